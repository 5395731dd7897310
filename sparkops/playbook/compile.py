"""A task and what one host knows now, to the steps that its node is to take, or to how the controller did it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sparkops.errors import InputError
from sparkops.playbook import modules
from sparkops.playbook.action import Acted
from sparkops.playbook.arguments import check_names, convert
from sparkops.playbook.files import Files
from sparkops.playbook.model import Play, Task
from sparkops.playbook.scope import NeedsOthers, NeedsResult, Scope, placed
from sparkops.playbook.template import OMIT
from sparkops.project.yaml import position


@dataclass(frozen=True)
class Step:
    """One module call: the frame for the node, or what the controller did. The loop's values, for the result."""

    frame: dict[str, Any]
    acted: Acted | None = None
    local: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Compiled:
    """A task for one host.

    No steps: it is skipped, and `reason` says why. looped: its result has `results`, one for each of `items`, of
    which only those with a step run. host: the delegate. no_log, ignore, check: as rendered. scope: for what judges it.
    """

    task: Task
    name: str
    scope: Scope
    steps: tuple[Step, ...] = ()
    reason: str = ""
    looped: bool = False
    skipped_items: tuple[tuple[int, Mapping[str, Any], str], ...] = ()
    delegate: str | None = None
    no_log: bool = False
    ignore: bool = False
    check: bool | None = None

    @property
    def local(self) -> bool:
        """Whether the controller has done it: nothing is sent."""
        return all(step.acted is not None for step in self.steps)


def compile_task(task: Task, play: Play, scope: Scope, files: Files) -> Compiled:
    """The task's steps. Raises NeedsResult, NeedsOthers, or InputError with its position."""
    scope = scope.for_task(task.words.vars, lambda name, kind: files.find(name, kind, task.file, task.position))
    with placed(task.position):
        if task.loop is None:
            return _plain(task, play, scope, files)
        return _looped(task, play, scope, files)


def _plain(task: Task, play: Play, scope: Scope, files: Files) -> Compiled:
    name = _display(task.name, scope)
    unmet = _unmet(task, scope)
    if unmet is not None:
        return Compiled(task, name, scope, reason=unmet, no_log=_no_log(task, scope))
    compiled = _about(task, name, scope)
    return replace(compiled, steps=(_step(task, play, scope, files),))


def _looped(task: Task, play: Play, scope: Scope, files: Files) -> Compiled:
    name = _display(task.name, scope)
    control = task.loop_control
    steps, skipped = [], []
    for index, item in enumerate(_items(task, scope)):
        local = {control.loop_var: item, "ansible_loop_var": control.loop_var}
        if control.index_var:
            local |= {control.index_var: index, "ansible_index_var": control.index_var}
        inner = scope.with_local(local)
        # As in Ansible, `when` is asked for each item.
        unmet = _unmet(task, inner)
        if unmet is None:
            steps.append(replace(_step(task, play, inner, files), local=local))
        else:
            skipped.append((index, local, unmet))
    compiled = replace(_about(task, name, scope), looped=True, steps=tuple(steps), skipped_items=tuple(skipped))
    if steps:
        return compiled
    return replace(compiled, reason=skipped[0][2] if skipped else "no items in the list")


def _items(task: Task, scope: Scope) -> list[Any]:
    if task.with_lookup is None:
        items = scope.render(task.loop)
        if not isinstance(items, list):
            where = position(task.loop) or task.position
            raise InputError(f"loop must be a list, not {type(items).__name__}", where=where)
        return items
    terms = scope.render(task.loop)
    listed = terms if isinstance(terms, list) else [terms]
    options: dict[str, Any] = {}
    if task.with_lookup == "first_found":
        # As in Ansible, it looks where the module's own files lie.
        folders = {"template": "templates", "include_vars": "vars"}
        options = {"folder": folders.get(task.module, "files")}
    return scope.templar.query(task.with_lookup, listed, scope.values, **options)


def _unmet(task: Task, scope: Scope) -> str | None:
    """The first condition that does not hold."""
    for condition in task.words.when:
        if not scope.truth(condition):
            return str(condition)
    return None


def _about(task: Task, name: str, scope: Scope) -> Compiled:
    words = task.words
    delegate = scope.render(words.delegate_to) if words.delegate_to is not None else None
    return Compiled(
        task,
        name,
        scope,
        delegate=None if delegate in (None, "") else str(delegate),
        no_log=_no_log(task, scope),
        ignore=scope.flag(words.ignore_errors, "ignore_errors"),
        check=None if words.check_mode is None else scope.flag(words.check_mode, "check_mode"),
    )


def _no_log(task: Task, scope: Scope) -> bool:
    return scope.flag(task.words.no_log, "no_log")


def _display(name: str, scope: Scope) -> str:
    """A task's name for people; one whose templates cannot be rendered yet is shown as it is written."""
    if "{{" not in name:
        return name
    try:
        return str(scope.render(name))
    except (NeedsResult, NeedsOthers, InputError):
        return name


def _step(task: Task, play: Play, scope: Scope, files: Files) -> Step:
    module = modules.module(task.module)
    given = check_names(module, task.args, task.position)
    args: dict[str, Any] = {}
    kinds: dict[str, str] = {}
    for each in module.fields.values():
        args[each.name] = each.default
        if each.name not in given:
            continue
        raw = given[each.name]
        if each.kind == "condition":
            args[each.name] = convert(module, each, raw, task.args, task.position)
            continue
        value = scope.render(raw)
        if value is OMIT:
            if each.default is modules.REQUIRED:
                raise InputError(f"{module.name} needs the argument {each.name!r}, and it is omitted")
            continue
        value = convert(module, each, value, task.args, task.position)
        if each.kind is not None and value is not None:
            kinds[each.name] = each.kind
            value = _resolve(each.kind, value, task, scope, files)
        args[each.name] = value
    if module.open_ended:
        args |= {name: scope.render(value) for name, value in given.items() if name not in module.fields}
    if module.act is not None:
        return Step({}, module.act(module.arguments(**args), scope))
    return Step(_frame(task, play, scope, args, kinds))


def _frame(task: Task, play: Play, scope: Scope, args: dict[str, Any], kinds: dict[str, str]) -> dict[str, Any]:
    frame: dict[str, Any] = {"module": task.module, "args": args}
    if kinds:
        frame["kinds"] = kinds
    words = task.words
    if scope.flag(words.become, "become"):
        frame["user"] = str(scope.render(words.become_user) or "root") if words.become_user else "root"
    environment: dict[str, str] = {}
    for layer in words.environment:
        rendered = scope.render(layer)
        if not isinstance(rendered, Mapping):
            raise InputError(f"environment must be a mapping, not {rendered!r}", where=position(layer))
        environment |= {str(key): str(value) for key, value in rendered.items()}
    if environment:
        frame["env"] = environment
    if task.notify:
        frame.update(scope=play.scope, notify=[] if task.judged else [str(scope.render(one)) for one in task.notify])
    if words.check_mode is not None:
        frame["check"] = scope.flag(words.check_mode, "check_mode")
    if words.timeout is not None:
        frame["timeout"] = float(scope.render(words.timeout))
    if task.failed_when is not None or task.until is not None or scope.flag(words.ignore_errors, "ignore_errors"):
        frame["go_on"] = True
    return frame


def _resolve(kind: str, value: Any, task: Task, scope: Scope, files: Files) -> Any:
    if isinstance(value, list):
        return [_resolve(kind, one, task, scope, files) for one in value]
    if kind == "source":
        return files.source(value, task.file, task.position)
    if kind == "template":
        return scope.render_file(files.find(value, "templates", task.file, task.position))
    if kind == "patch":
        return dict(files.patch(value))
    return value
