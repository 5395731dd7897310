"""The names that a host's templates see at one moment, and which of them are still to come from the node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sparkops.playbook.template import Templar


class NeedsResult(Exception):
    """A template uses a name whose value comes from a task that has not run yet."""

    def __init__(self, names: set[str]) -> None:
        super().__init__(", ".join(sorted(names)))
        self.names = names


@dataclass
class Scope:
    """values: what is known. pending: names that are registered by tasks ahead. facts_pending: facts are not in yet."""

    templar: Templar
    values: Mapping[str, Any]
    pending: set[str] = field(default_factory=set)
    facts_pending: bool = False

    def render(self, value: Any) -> Any:
        """The value with its templates rendered. Raises NeedsResult, or InputError with the position."""
        self._known(lambda: self.templar.names(value, self.values))
        return self.templar.render(value, self.values)

    def render_file(self, path: Path) -> str:
        """A template file's text. Raises as render does."""
        self._known(lambda: self.templar.file_names(path, self.values))
        return self.templar.render_file(path, self.values)

    def truth(self, condition: Any) -> bool:
        """Whether a `when` holds. Raises as render does."""
        self._known(lambda: self.templar.condition_names(condition, self.values))
        return self.templar.truth(condition, self.values)

    def all_true(self, conditions: tuple[Any, ...]) -> bool:
        """A list of conditions is their conjunction; the first false one ends it."""
        return all(self.truth(condition) for condition in conditions)

    def with_values(self, more: Mapping[str, Any]) -> Scope:
        """The same moment with further names (a task's vars, a loop's item)."""
        if not more:
            return self
        return Scope(self.templar, {**self.values, **more}, self.pending - set(more), self.facts_pending)

    def _known(self, used: Callable[[], set[str]]) -> None:
        if not self.pending and not self.facts_pending:
            return
        missing = {name for name in used() if name in self.pending or self._is_fact_to_come(name)}
        if missing:
            raise NeedsResult(missing)

    def _is_fact_to_come(self, name: str) -> bool:
        return self.facts_pending and name not in self.values and name.startswith("ansible_")
