"""The names that a host's templates see at one moment, and which of them are still to come from the node."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from sparkops.errors import InputError
from sparkops.playbook.template import Templar, is_template
from sparkops.project.yaml import position

HOSTVARS = "hostvars"
# A number of seconds or of tries beyond which a task does not end in anybody's life.
MOST = 1e9
# What depends on how far the other hosts are.
OTHERS = frozenset((HOSTVARS, "ansible_play_hosts", "ansible_play_batch", "play_hosts"))


class NeedsResult(Exception):
    """A template uses a name whose value comes from a task that has not run yet."""

    def __init__(self, names: set[str]) -> None:
        super().__init__(", ".join(sorted(names)))
        self.names = names


class NeedsOthers(Exception):
    """A template reads other hosts' variables: they must be as far as this one first."""


class Layers(Mapping[str, Any]):
    """ChainMap, but chains within are laid out in one line: names are looked up dozens of times a task and host."""

    def __init__(self, layers: Iterable[Mapping[str, Any]]) -> None:
        self._maps = list(_flat(layers))

    def __getitem__(self, key: str) -> Any:
        for layer in self._maps:
            if key in layer:
                return layer[key]
        raise KeyError(key)

    def __contains__(self, key: object) -> bool:
        for layer in self._maps:  # noqa: SIM110 (any() costs a generator)
            if key in layer:
                return True
        return False

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(key for layer in reversed(self._maps) for key in layer))

    def __len__(self) -> int:
        return len(set().union(*self._maps))


def _flat(layers: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for layer in layers:
        if isinstance(layer, ChainMap):
            yield from _flat(layer.maps)
        else:
            yield layer


@dataclass(frozen=True)
class Scope:
    """What a host's templates see.

    The layers, each beating the one before: below (inventory, facts, play), task (its own vars), included (by
    include_vars), results (registered, set_fact), params (the vars of the includes it came by), forced (magic, -e),
    local (a loop's item).
    pending: names that tasks ahead register. facts_pending: facts are not in yet. apart: other hosts may be elsewhere,
    so what depends on them may not be read. find_file: a file that a task names.
    """

    templar: Templar
    below: Mapping[str, Any]
    forced: Mapping[str, Any]
    results: Mapping[str, Any] = field(default_factory=dict)
    included: Mapping[str, Any] = field(default_factory=dict)
    task: Mapping[str, Any] = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)
    local: Mapping[str, Any] = field(default_factory=dict)
    pending: frozenset[str] = frozenset()
    facts_pending: bool = False
    apart: bool = False
    find_file: Callable[[str, str], Path] | None = None

    @cached_property
    def values(self) -> Mapping[str, Any]:
        """All names; the first map that has one wins."""
        return Layers((self.local, self.forced, self.params, self.results, self.included, self.task, self.below))

    def render(self, value: Any) -> Any:
        """The value with its templates rendered. Raises NeedsResult, NeedsOthers, or InputError with the position."""
        if not is_template(value) and not isinstance(value, (dict, list)):
            return value
        self._known(lambda: self.templar.names(value, self.values))
        return self.templar.render(value, self.values)

    def render_file(self, path: Path) -> str:
        """A template file's text. Raises as render does."""
        self._known(lambda: self.templar.file_names(path, self.values))
        return self.templar.render_file(path, self.values)

    def expression(self, text: str) -> Any:
        """The value of a bare expression. Raises as render does."""
        self._known(lambda: self.templar.condition_names(text, self.values))
        return self.templar.expression(text, self.values)

    def truth(self, condition: Any) -> bool:
        """Whether a condition holds. Raises as render does."""
        self._known(lambda: self.templar.condition_names(condition, self.values))
        return self.templar.truth(condition, self.values)

    def all_true(self, conditions: tuple[Any, ...]) -> bool:
        """A list of conditions is their conjunction; the first false one ends it."""
        return all(self.truth(condition) for condition in conditions)

    def flag(self, value: Any, name: str) -> bool:
        """A word that is a bool, or a template or text of one."""
        if isinstance(value, str):
            value = self.render(value)
        if isinstance(value, bool) or value is None:
            return bool(value)
        word = str(value).strip().lower()
        if word in ("true", "yes", "on", "1"):
            return True
        if word in ("false", "no", "off", "0", ""):
            return False
        raise InputError(f"{name} must be true or false, not {value!r}")

    def number(self, value: Any, name: str) -> float:
        """A word that is a number, or a template or text of one; finite and not below 0. Raises as render does."""
        rendered = self.render(value)
        try:
            number = float(rendered)
        except (TypeError, ValueError, OverflowError):
            number = -1.0
        if isinstance(rendered, bool) or not 0 <= number < MOST:
            raise InputError(f"{name} must be a number, not {rendered!r}", where=position(value))
        return number

    def find(self, name: Any, kind: str) -> Path:
        """A file or folder that a task names. Raises InputError."""
        assert self.find_file is not None
        return self.find_file(str(name), kind)

    def for_task(
        self, variables: Mapping[str, Any], params: Mapping[str, Any], find: Callable[[str, str], Path]
    ) -> Scope:
        """The same moment with a task's own vars, and those of its includes, in their places."""
        return replace(self, task=variables, params=params, find_file=find)

    def with_local(self, more: Mapping[str, Any]) -> Scope:
        """With names that beat all (a loop's item)."""
        return replace(self, local={**self.local, **more}, pending=self.pending - set(more))

    def with_results(self, results: Mapping[str, Any], included: Mapping[str, Any]) -> Scope:
        """With registered results and facts that were set, and with variables that were included."""
        if not results and not included:
            return self
        return replace(
            self,
            results=ChainMap(dict(results), self.results),  # type: ignore[arg-type]
            included=ChainMap(dict(included), self.included),  # type: ignore[arg-type]
            pending=self.pending - results.keys() - included.keys(),
        )

    def settled(self) -> Scope:
        """The same names, with nothing to wait for."""
        return replace(self, pending=frozenset(), facts_pending=False, apart=False)

    def awaiting(self, names: set[str], facts: bool = False) -> Scope:
        """With names that tasks before this moment will give."""
        return replace(self, pending=self.pending | names, facts_pending=self.facts_pending or facts)

    def _known(self, used: Callable[[], set[str]]) -> None:
        if not self.pending and not self.facts_pending and not self.apart:
            return
        names = used()
        reflective = names & {HOSTVARS, "vars"}
        missing = {name for name in names if name in self.pending or self._is_fact_to_come(name)}
        if reflective and (self.pending or self.facts_pending):
            missing |= reflective
        if missing:
            raise NeedsResult(missing)
        if self.apart and names & OTHERS:
            raise NeedsOthers

    def _is_fact_to_come(self, name: str) -> bool:
        if not self.facts_pending or not name.startswith("ansible_"):
            return False
        return name == "ansible_facts" or name not in self.values


@contextmanager
def placed(where: Any) -> Iterator[None]:
    """Gives an InputError that knows no place the one of the task."""
    try:
        yield
    except InputError as error:
        error.where = error.where or where
        raise
