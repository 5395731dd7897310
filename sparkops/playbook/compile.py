"""A task and what one host knows now, to the steps that its node is to take, or to how the controller did it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sparkops.errors import InputError, UndefinedName
from sparkops.playbook import modules
from sparkops.playbook.action import Acted
from sparkops.playbook.arguments import check_names, convert
from sparkops.playbook.files import Files
from sparkops.playbook.model import Play, Task
from sparkops.playbook.scope import HOSTVARS, NeedsOthers, NeedsResult, Scope, placed
from sparkops.playbook.template import OMIT
from sparkops.project.yaml import position

HIDDEN = "hidden by no_log"


@dataclass(frozen=True)
class Step:
    """One module call: the frame for the node, or what the controller did. The loop's values, for the result.

    delegate: the other host whose session it goes through.
    """

    frame: dict[str, Any]
    acted: Acted | None = None
    local: Mapping[str, Any] = field(default_factory=dict)
    delegate: str | None = None


@dataclass(frozen=True)
class Compiled:
    """A task for one host.

    No steps: it is skipped, and `reason` is the condition that does not hold (None: the loop has no items). looped: its
    result has `results`, one for each item, of which only those with a step run. no_log, ignore, check: as rendered.
    retries, delay: with `until`, how often to try again and the seconds between. error: why it could not be rendered.
    scope: for what judges it.
    """

    task: Task
    name: str
    scope: Scope
    steps: tuple[Step, ...] = ()
    reason: Any = None
    looped: bool = False
    skipped_items: tuple[tuple[int, Mapping[str, Any], Any], ...] = ()
    no_log: bool = False
    ignore: bool = False
    check: bool | None = None
    retries: int = 0
    delay: float = 0.0
    error: InputError | None = None

    @property
    def delegated(self) -> bool:
        """Whether steps go through other hosts' sessions."""
        return any(step.delegate is not None for step in self.steps)

    @property
    def local(self) -> bool:
        """Whether the controller has done it: nothing is sent."""
        return all(step.acted is not None for step in self.steps)


def compile_task(task: Task, play: Play, scope: Scope, files: Files) -> Compiled:
    """The task's steps. Raises NeedsResult, NeedsOthers, or InputError with its position."""
    scope = _own(task, scope, files)
    with placed(task.position):
        try:
            if task.loop is None:
                return _plain(task, play, scope, files)
            return _looped(task, play, scope, files)
        except InputError as error:
            raise _told(error, task, scope) from None


def failing(task: Task, play: Play, scope: Scope, files: Files, error: InputError) -> Compiled:
    """A task that cannot be rendered, as one that has failed: its words still say what that means. Of a loop, the items
    that can be rendered are carried out.
    """
    scope = _own(task, scope, files).settled()
    error = _told(error, task, scope)
    if task.loop is not None:
        with suppress(InputError):
            return replace(_looped(task, play, scope, files, strict=False), error=error)
    try:
        about = _about(task, display(task.name, scope), scope)
    except InputError:
        about = Compiled(task, task.name, scope, no_log=_hides(task, scope))
    return replace(about, steps=(_broken(error),), error=error)


def _broken(error: InputError) -> Step:
    return Step({}, Acted("failed", str(error), {"msg": error.message}))


def hidden(error: InputError, where: Any = None) -> InputError:
    """The same error without its text, which may have a secret in it."""
    kind = UndefinedName if isinstance(error, UndefinedName) else InputError
    return kind(HIDDEN, where=error.where or where)


def _told(error: InputError, task: Task, scope: Scope) -> InputError:
    return hidden(error, task.position) if _hides(task, scope) else error


def _hides(task: Task, scope: Scope) -> bool:
    """Whether a task has no_log; one whose no_log cannot be rendered has it."""
    try:
        return task.words.no_log is not None and _no_log(task, scope.settled())
    except InputError:
        return True


def notified(task: Task, scope: Scope) -> list[str]:
    """The handlers that a task notifies; a template may give several."""
    rendered = [scope.render(one) for one in task.notify]
    return [str(name) for one in rendered for name in (one if isinstance(one, list) else [one])]


def resolved(names: list[str], play: Play, scope: Scope) -> list[str]:
    """Topics as the handlers that listen to them. A node remembers handlers alone: a topic would be forgotten with the
    first of them that has run.
    """
    # A handler's name is the host's, whatever the task that notifies it has of its own.
    scope = replace(scope.settled(), task={}, params={}, local={})
    found: list[str] = []
    for name in names:
        listening = [display(one.name, scope) for one in play.handlers if name in one.listen]
        named = any(name in (one.name, display(one.name, scope)) for one in play.handlers)
        found += listening if listening and not named else [name, *listening]
    return list(dict.fromkeys(found))


def _own(task: Task, scope: Scope, files: Files) -> Scope:
    def find(name: str, kind: str) -> Path:
        return files.find(name, kind, task.file, task.position)

    return scope.for_task(task.words.vars, task.words.params, find)


def _plain(task: Task, play: Play, scope: Scope, files: Files) -> Compiled:
    name = display(task.name, scope)
    unmet = _unmet(task, scope)
    if unmet:
        return Compiled(task, name, scope, reason=unmet[0], no_log=_no_log(task, scope))
    compiled = _about(task, name, scope)
    return replace(compiled, steps=(_step(task, play, scope, files),))


def _looped(task: Task, play: Play, scope: Scope, files: Files, strict: bool = True) -> Compiled:
    name = display(task.name, scope)
    control = task.loop_control
    steps, skipped = [], []
    try:
        items = _items(task, scope)
    except UndefinedName:
        # As in Ansible, a loop over nothing that there is may be left out by its `when`.
        unmet = _unmet(task, scope)
        if not unmet:
            raise
        return Compiled(task, name, scope, reason=unmet[0], no_log=_no_log(task, scope))
    for index, item in enumerate(items):
        local = {control.loop_var: item, "ansible_loop_var": control.loop_var}
        if control.index_var:
            local |= {control.index_var: index, "ansible_index_var": control.index_var}
        inner = scope.with_local(local)
        try:
            # As in Ansible, `when` is asked for each item.
            unmet = _unmet(task, inner)
            if unmet:
                skipped.append((index, local, unmet[0]))
                continue
            step = _step(task, play, inner, files)
        except InputError as error:
            if strict:
                raise
            step = _broken(_told(error, task, inner))
        steps.append(replace(step, local=local))
        if step.acted is not None:
            # The next item sees what set_fact has set for this one.
            scope = scope.with_results(step.acted.facts, step.acted.included)
    return replace(_about(task, name, scope), looped=True, steps=tuple(steps), skipped_items=tuple(skipped))


def _items(task: Task, scope: Scope) -> list[Any]:
    if task.with_lookup is None:
        items = scope.render(task.loop)
        if not isinstance(items, list):
            where = position(task.loop) or task.position
            kind = "text" if isinstance(items, str) else type(items).__name__
            raise InputError(f"loop must be a list, not {kind}", where=where)
        return items
    terms = scope.render(task.loop)
    listed = terms if isinstance(terms, list) else [terms]
    options: dict[str, Any] = {}
    if task.with_lookup == "first_found":
        # As in Ansible, it looks where the module's own files lie.
        folders = {"template": "templates", "include_vars": "vars"}
        options = {"folder": folders.get(task.module, "files")}
    return scope.templar.query(task.with_lookup, listed, scope.values, **options)


def _unmet(task: Task, scope: Scope) -> list[Any]:
    """The first condition that does not hold, or none."""
    return next(([condition] for condition in task.words.when if not scope.truth(condition)), [])


def _about(task: Task, name: str, scope: Scope) -> Compiled:
    words = task.words
    tried = task.until is not None
    return Compiled(
        task,
        name,
        scope,
        no_log=_no_log(task, scope),
        ignore=scope.flag(words.ignore_errors, "ignore_errors"),
        check=None if words.check_mode is None else scope.flag(words.check_mode, "check_mode"),
        retries=int(scope.number(task.retries, "retries")) if tried else 0,
        delay=scope.number(task.delay, "delay") if tried else 0.0,
    )


def _no_log(task: Task, scope: Scope) -> bool:
    return scope.flag(task.words.no_log, "no_log")


def display(name: str, scope: Scope) -> str:
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
    delegate = scope.render(task.words.delegate_to) if task.words.delegate_to is not None else None
    other = None if delegate in (None, "") or delegate is OMIT else str(delegate)
    frame = _frame(task, play, scope, args, kinds, other)
    if other is not None:
        # The host itself owes the handlers, not the one that does this for it.
        frame.pop("notify", None)
    return Step(frame, delegate=other)


def _become(task: Task, scope: Scope, other: str | None) -> str | None:
    """The user that a task runs as, None: the one that is logged in. As in Ansible, the variables of the host that it
    runs on beat the words of the play.
    """
    known = scope.values
    if other not in (None, known.get("inventory_hostname")):
        known = known.get(HOSTVARS, {}).get(other) or {}
    if not scope.flag(known.get("ansible_become", task.words.become), "become"):
        return None
    return str(scope.render(known.get("ansible_become_user", task.words.become_user) or "root")) or "root"


def _frame(
    task: Task, play: Play, scope: Scope, args: dict[str, Any], kinds: dict[str, str], other: str | None
) -> dict[str, Any]:
    frame: dict[str, Any] = {"module": task.module, "args": args}
    if kinds:
        frame["kinds"] = kinds
    words = task.words
    if (user := _become(task, scope, other)) is not None:
        frame["user"] = user
    environment: dict[str, str] = {}
    for layer in words.environment:
        rendered = scope.render(layer)
        if not isinstance(rendered, Mapping):
            raise InputError(f"environment must be a mapping, not {rendered!r}", where=position(layer))
        environment |= {str(key): str(value) for key, value in rendered.items()}
    if environment:
        frame["env"] = environment
    if task.notify:
        frame.update(scope=play.scope, notify=[] if task.judged else resolved(notified(task, scope), play, scope))
    if words.check_mode is not None:
        frame["check"] = scope.flag(words.check_mode, "check_mode")
    if words.timeout is not None:
        frame["timeout"] = scope.number(words.timeout, "timeout")
    if task.failed_when is not None or task.until is not None or scope.flag(words.ignore_errors, "ignore_errors"):
        frame["go_on"] = True
    return frame


def _resolve(kind: str, value: Any, task: Task, scope: Scope, files: Files) -> Any:
    if isinstance(value, list):
        return [_resolve(kind, one, task, scope, files) for one in value]
    if kind == "source":
        return files.source(value, task.file, task.position, folders=task.module == "copy")
    if kind == "template":
        return scope.render_file(files.find(value, "templates", task.file, task.position))
    if kind == "patch":
        return dict(files.patch(value))
    return value
