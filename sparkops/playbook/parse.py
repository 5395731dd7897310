"""YAML to plays: every word known, of the right kind, and in its place, or an error with its position."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from sparkops.errors import InputError, InputErrors, Position, SparkopsError
from sparkops.playbook import modules, words
from sparkops.playbook.arguments import check_names
from sparkops.playbook.model import Play, Task
from sparkops.project.near import did_you_mean
from sparkops.project.yaml import key_position, load, original, position

IDENTIFIER_HINT = "letters, digits and underscores, not starting with a digit"


def playbook(path: Path) -> list[Play]:
    """The plays of a playbook file. Raises InputErrors with all that is wrong in it."""
    document = load(path)
    start = Position(str(path), 1, 1)
    if not isinstance(document, list) or not document:
        raise InputError("a playbook is a list of plays", where=position(document) or start)
    reader = _Reader(str(path))
    plays = [reader.play(item, position(document, index) or start) for index, item in enumerate(document)]
    if reader.errors:
        raise reader.errors[0] if len(reader.errors) == 1 else InputErrors(reader.errors)
    return [play for play in plays if play is not None]


class _Reader:
    """Collects what is wrong instead of stopping at the first."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.errors: list[SparkopsError] = []

    def play(self, item: Any, where: Position) -> Play | None:
        try:
            _is_mapping(item, "a play", where)
            _check_words(item, words.PLAY, words.PLAY_REFUSED, "play")
            if "hosts" not in item:
                raise InputError("a play needs hosts:", where=where)
        except InputError as error:
            self.errors.append(error)
            return None
        hosts = item["hosts"]
        inherited = _tags(item)
        handlers = self.tasks(item, "handlers", frozenset())
        tasks = self.tasks(item, "tasks", inherited)
        known = {name for handler in handlers for name in (handler.name, *handler.listen)}
        for task in (*tasks, *handlers):
            for name in task.notify:
                if name not in known:
                    self.errors.append(
                        InputError(
                            f"no handler is called {name!r}", where=task.position, hint=did_you_mean(name, known)
                        )
                    )
        try:
            return Play(
                name=str(item.get("name") or (hosts if isinstance(hosts, str) else ",".join(map(str, hosts)))),
                hosts=hosts if isinstance(hosts, str) else ",".join(map(str, hosts)),
                position=where,
                file=self.file,
                vars=_variables(item, "vars"),
                tasks=tasks,
                handlers=handlers,
                gather_facts=_flag(item, "gather_facts", True),
                become=item.get("become", False),
                become_user=str(item.get("become_user", "root")),
                environment=_variables(item, "environment"),
            )
        except InputError as error:
            self.errors.append(error)
            return None

    def tasks(self, play: Mapping[str, Any], key: str, tags: frozenset[str]) -> tuple[Task, ...]:
        items = play.get(key) or []
        if not isinstance(items, list):
            self.errors.append(InputError(f"{key} must be a list", where=position(play, key)))
            return ()
        found = []
        for index, item in enumerate(items):
            try:
                where = position(items, index) or Position(self.file, 1, 1)
                found.append(_task(item, where, tags, handler=key == "handlers"))
            except InputError as error:
                self.errors.append(error)
        return tuple(found)


def _task(item: Any, where: Position, tags: frozenset[str], handler: bool) -> Task:
    _is_mapping(item, "a task", where)
    name, raw = _module(item, where, handler)
    module = modules.module(name)
    args = _arguments(item, raw, module, where)
    check_names(module, args, where)
    register = item.get("register")
    if register is not None and not str(register).isidentifier():
        raise InputError(
            f"{register!r} cannot be a variable's name", where=position(item, "register"), hint=IDENTIFIER_HINT
        )
    loop = item.get("loop")
    if loop is not None and not isinstance(loop, (list, str)):
        raise InputError("loop must be a list or a template of one", where=position(item, "loop"))
    return Task(
        name=str(item.get("name") or name),
        module=name,
        args=args,
        position=where,
        when=_conditions(item, "when"),
        loop=loop,
        register=register,
        notify=tuple(_strings(item, "notify")),
        listen=tuple(_strings(item, "listen")),
        tags=tags | _tags(item),
        become=item.get("become"),
        become_user=item.get("become_user"),
        vars=_variables(item, "vars"),
        environment=_variables(item, "environment"),
        changed_when=_conditions(item, "changed_when") if "changed_when" in item else None,
        failed_when=_conditions(item, "failed_when") if "failed_when" in item else None,
        ignore_errors=_flag(item, "ignore_errors", False),
        no_log=_flag(item, "no_log", False),
    )


def _module(item: Mapping[str, Any], where: Position, handler: bool) -> tuple[str, Any]:
    """The one key of a task that is a module, and its value."""
    known = words.HANDLER if handler else words.TASK
    found = []
    for key in item:
        if key in known:
            continue
        name = next((str(key)[len(prefix) :] for prefix in modules.PREFIXES if str(key).startswith(prefix)), str(key))
        if name in modules.names():
            found.append((name, item[key]))
        else:
            raise _unknown(key, item, known, "handler" if handler else "task")
    if not found:
        raise InputError("this task has no module", where=where, hint="for example `file:` or `command:`")
    if len(found) > 1:
        raise InputError(f"a task has one module, this one has {' and '.join(name for name, _ in found)}", where=where)
    return found[0]


def _arguments(item: Mapping[str, Any], raw: Any, module: modules.Module, where: Position) -> Mapping[str, Any]:
    more = _variables(item, "args")
    if isinstance(raw, Mapping):
        return {**raw, **more} if more else raw
    if raw is None:
        return more
    if isinstance(raw, list) or not module.free_form:
        raise InputError(
            f"{module.name} takes its arguments as a mapping",
            where=next((key_position(item, key) for key in item if item[key] is raw), where),
            hint=f"it takes: {', '.join(sorted(module.fields))}",
        )
    return {module.free_form: raw, **more}


def _check_words(item: Mapping[str, Any], known: frozenset[str], refused: frozenset[str], what: str) -> None:
    for key in item:
        if key not in known:
            raise _unknown(key, item, known, what, refused)


def _unknown(
    key: Any,
    item: Mapping[str, Any],
    known: Iterable[str],
    what: str,
    refused: frozenset[str] = words.TASK_REFUSED,
) -> InputError:
    where = key_position(item, key)
    if key in refused:
        return InputError(f"{key}: Ansible has this word, sparkops does not support it", where=where)
    candidates = [*known, *(modules.names() if what != "play" else ())]
    kind = "word of a play" if what == "play" else "module or word of a task"
    return InputError(f"{key!r} is no {kind}", where=where, hint=did_you_mean(str(key), candidates))


def _is_mapping(item: Any, what: str, where: Position) -> None:
    if not isinstance(item, Mapping):
        raise InputError(f"{what} is a mapping of words to values, not {type(item).__name__}", where=where)


def _variables(item: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = item.get(key)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InputError(f"{key} must be a mapping", where=position(item, key))
    return value


def _flag(item: Mapping[str, Any], key: str, default: bool) -> bool:
    value = item.get(key, default)
    if not isinstance(value, bool):
        raise InputError(
            f"{key} must be true or false, not {original(item, key) or value!r}", where=position(item, key)
        )
    return value


def _conditions(item: Mapping[str, Any], key: str) -> tuple[Any, ...]:
    value = item.get(key)
    if value is None:
        return ()
    return tuple(value) if isinstance(value, list) else (value,)


def _strings(item: Mapping[str, Any], key: str) -> list[str]:
    value = item.get(key)
    if value is None:
        return []
    values = value if isinstance(value, list) else [value]
    if not all(isinstance(one, str) for one in values):
        raise InputError(f"{key} must be text or a list of texts", where=position(item, key))
    return values


def _tags(item: Mapping[str, Any]) -> frozenset[str]:
    value = item.get("tags")
    values = value if isinstance(value, list) else [] if value is None else str(value).split(",")
    return frozenset(str(one).strip() for one in values)
