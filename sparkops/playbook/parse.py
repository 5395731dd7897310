"""YAML files to plays: every word known, of the right kind, and in its place, or an error with its position."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from sparkops.errors import InputError, InputErrors, Position, SparkopsError
from sparkops.playbook import inherit, words
from sparkops.playbook.model import Block, Play, Step, Task, Words, tasks_in
from sparkops.playbook.readtask import check_words, is_mapping, plain_name, read_task
from sparkops.project.near import did_you_mean
from sparkops.project.yaml import load, original, position

Render = Callable[[Any], Any]
# The files that have imported one another on the way to this one.
Chain = tuple[str, ...]


def playbook(path: Path, render: Render = lambda value: value) -> list[Play]:
    """The plays of a playbook file and of those that it imports.

    `render` gives the value of a template in an import's file name, which only -e's variables can be in. Raises
    InputError or InputErrors with all that is wrong.
    """
    reader = _Reader(render)
    plays = reader.playbook(str(path), Words(), (str(path.resolve()),))
    reader.finish()
    return plays


def task_file(path: Path, outer: Words, handlers: frozenset[str], render: Render) -> tuple[Step, ...]:
    """The tasks of a file that include_tasks names; `handlers` are those they may notify. Raises as playbook does."""
    reader = _Reader(render)
    chain = (str(path.resolve()),)
    steps = reader.tasks(_list_of(path, "tasks"), Position(str(path), 1, 1), str(path), outer, chain)
    for task in tasks_in(steps):
        reader.check_notify(task, handlers)
    reader.finish()
    return steps


class _Reader:
    """Collects what is wrong instead of stopping at the first."""

    def __init__(self, render: Render) -> None:
        self.errors: list[SparkopsError] = []
        self._render = render

    def finish(self) -> None:
        if self.errors:
            raise self.errors[0] if len(self.errors) == 1 else InputErrors(self.errors)

    def playbook(self, file: str, outer: Words, chain: Chain) -> list[Play]:
        document = _list_of(Path(file), "plays")
        found: list[Play] = []
        for index, item in enumerate(document):
            where = position(document, index) or Position(file, 1, 1)
            try:
                is_mapping(item, "a play", where)
                imported = next((key for key in item if plain_name(key) == "import_playbook"), None)
                if imported is not None:
                    found += self._imported(item, imported, where, file, outer, chain)
                else:
                    found.append(self._play(item, where, file, outer))
            except InputErrors as errors:
                self.errors += errors.errors
            except InputError as error:
                self.errors.append(error)
        return found

    def _imported(
        self, item: Mapping[str, Any], key: str, where: Position, file: str, outer: Words, chain: Chain
    ) -> list[Play]:
        check_words(item, words.IMPORT_PLAYBOOK | {key}, "import of a playbook")
        path = self._beside(item[key], file, position(item, key) or where, chain)
        plays = self.playbook(str(path), inherit.under(outer, item), (*chain, str(path.resolve())))
        return [replace(play, vars={**play.vars, **inherit.mapping(item, "vars")}) for play in plays]

    def _play(self, item: Mapping[str, Any], where: Position, file: str, outer: Words) -> Play:
        check_words(item, words.PLAY, "play")
        if item.get("hosts") in (None, "", []):
            raise InputError("a play needs hosts:", where=where)
        hosts = ",".join(inherit.strings(item, "hosts"))
        # A play's vars are weaker than a task's, so they stay with the play.
        inherited = replace(inherit.under(outer, item), vars={})
        sections = tuple(
            self.tasks(item.get(key) or [], position(item, key) or where, file, inherited, (), key)
            for key in ("pre_tasks", "tasks", "post_tasks")
        )
        found = self._handlers(item, where, file, inherited)
        names = frozenset(name for handler in found for name in (handler.name, *handler.listen))
        for task in (*tasks_in(tuple(step for section in sections for step in section)), *found):
            self.check_notify(task, names)
        return Play(
            name=str(item.get("name") or hosts),
            hosts=hosts,
            position=where,
            file=file,
            vars=inherit.mapping(item, "vars"),
            vars_files=inherit.conditions(item, "vars_files"),
            sections=sections,
            handlers=found,
            gather_facts=item.get("gather_facts", True),
            words=inherited,
            serial=_serial(item),
            max_fail_percentage=_percentage(item),
            any_errors_fatal=_flag(item, "any_errors_fatal"),
        )

    def _handlers(self, item: Mapping[str, Any], where: Position, file: str, outer: Words) -> tuple[Task, ...]:
        # Handlers run when they are notified, whatever tags were asked for.
        steps = self.tasks(item.get("handlers") or [], where, file, replace(outer, tags=frozenset()), (), "handlers")
        return tuple(tasks_in(steps))

    def tasks(
        self, items: Any, where: Position, file: str, outer: Words, chain: Chain, key: str = "tasks"
    ) -> tuple[Step, ...]:
        if not isinstance(items, list):
            self.errors.append(InputError(f"{key} must be a list", where=where))
            return ()
        found: list[Step] = []
        for index, item in enumerate(items):
            try:
                at = position(items, index) or where
                found += self._step(item, at, file, outer, chain, key == "handlers")
            except InputErrors as errors:
                self.errors += errors.errors
            except InputError as error:
                self.errors.append(error)
        return tuple(found)

    def _step(
        self, item: Any, where: Position, file: str, outer: Words, chain: Chain, handler: bool
    ) -> tuple[Step, ...]:
        is_mapping(item, "a task", where)
        if "block" in item:
            return (self._block(item, where, file, outer, chain),)
        imported = next((key for key in item if plain_name(key) == "import_tasks"), None)
        if imported is None:
            return (read_task(item, where, file, outer, handler),)
        check_words(item, words.IMPORT | {imported}, "import of tasks")
        named = item[imported]
        path = self._beside(named.get("file") if isinstance(named, Mapping) else named, file, where, chain)
        inner = inherit.under(outer, item)
        inside = (*chain, str(path.resolve()))
        return self.tasks(_list_of(path, "tasks"), Position(str(path), 1, 1), str(path), inner, inside)

    def _block(self, item: Mapping[str, Any], where: Position, file: str, outer: Words, chain: Chain) -> Block:
        check_words(item, words.BLOCK, "block")
        inner = inherit.under(outer, item)
        parts = [
            self.tasks(item.get(key) or [], position(item, key) or where, file, inner, chain, key)
            for key in ("block", "rescue", "always")
        ]
        return Block(where, parts[0], parts[1], parts[2])

    def _beside(self, name: Any, file: str, where: Position, chain: Chain) -> Path:
        if not isinstance(name, str):
            raise InputError("the name of a file is missing", where=where)
        try:
            text = str(self._render(name))
        except InputError as error:
            hint = "an import is read before any host is known: only -e's variables can be in it; or use include_tasks"
            raise InputError(error.message, where=error.where or where, hint=hint) from None
        path = Path(text).expanduser()
        beside = Path(file).parent
        for candidate in [path] if path.is_absolute() else [beside / path, beside / "tasks" / path]:
            if candidate.is_file():
                if str(candidate.resolve()) in chain:
                    raise InputError(f"{text} imports itself", where=where, hint=" -> ".join((*chain, text)))
                return candidate
        raise InputError(f"there is no file {text}", where=where, hint=f"looked in {beside}")

    def check_notify(self, task: Task, names: frozenset[str]) -> None:
        """A handler that is notified must exist; a name with a template is looked at when it is known."""
        for name in task.notify:
            if name not in names and "{{" not in name:
                hint = did_you_mean(name, names)
                self.errors.append(InputError(f"no handler is called {name!r}", where=task.position, hint=hint))


def _list_of(path: Path, what: str) -> list[Any]:
    document = load(path)
    if document is None and what == "tasks":
        return []
    if not isinstance(document, list) or (not document and what == "plays"):
        raise InputError(f"this file must be a list of {what}", where=position(document) or Position(str(path), 1, 1))
    return document


def _flag(item: Mapping[str, Any], key: str) -> bool:
    value = item.get(key, False)
    if not isinstance(value, bool):
        written = original(item, key) or repr(value)
        raise InputError(f"{key} must be true or false, not {written}", where=position(item, key))
    return value


def _serial(item: Mapping[str, Any]) -> tuple[Any, ...]:
    value = item.get("serial")
    return () if value is None else tuple(value) if isinstance(value, list) else (value,)


def _percentage(item: Mapping[str, Any]) -> float | None:
    value = item.get("max_fail_percentage")
    if value is None:
        return None
    try:
        number = float(str(value).rstrip("%"))
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        where = position(item, "max_fail_percentage")
        raise InputError(f"max_fail_percentage is a number, not {value!r}", where=where)
    return number
