"""A task and what one host knows now, to the steps that its node is to take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sparkops.errors import InputError
from sparkops.playbook import modules
from sparkops.playbook.arguments import check_names, convert
from sparkops.playbook.files import Files
from sparkops.playbook.model import Play, Task
from sparkops.playbook.scope import NeedsResult, Scope
from sparkops.project.yaml import position

ITEM = "item"


@dataclass(frozen=True)
class Step:
    """One module call: the frame for the node. `item` is the loop's value, for the registered result."""

    frame: dict[str, Any]
    item: Any = None


@dataclass(frozen=True)
class Compiled:
    """A task for one host. No steps: it is skipped, and `reason` says why. `looped`: its result has `results`."""

    task: Task
    name: str
    steps: tuple[Step, ...] = ()
    reason: str = ""
    looped: bool = False


def compile_task(task: Task, play: Play, scope: Scope, files: Files) -> Compiled:
    """The task's steps. Raises NeedsResult, or InputError with its position."""
    scope = scope.with_values(task.vars)
    name = _display(task.name, scope)
    if task.loop is None:
        if not scope.all_true(task.when):
            return Compiled(task, name, reason=_unmet(task))
        return Compiled(task, name, (Step(_frame(task, play, scope, files)),))
    items = scope.render(task.loop)
    if not isinstance(items, list):
        raise InputError(f"loop must be a list, not {type(items).__name__}", where=position(task.loop) or task.position)
    steps = []
    for item in items:
        inner = scope.with_values({ITEM: item})
        # As in Ansible, `when` is asked for each item.
        if inner.all_true(task.when):
            steps.append(Step(_frame(task, play, inner, files), item))
    return Compiled(task, name, tuple(steps), "" if steps else "no items" if not items else _unmet(task), looped=True)


def _unmet(task: Task) -> str:
    return "when: " + " and ".join(str(condition) for condition in task.when)


def _display(name: str, scope: Scope) -> str:
    """A task's name for people; one whose templates cannot be rendered yet is shown as it is written."""
    if "{{" not in name:
        return name
    try:
        return str(scope.render(name))
    except (NeedsResult, InputError):
        return name


def _frame(task: Task, play: Play, scope: Scope, files: Files) -> dict[str, Any]:
    module = modules.module(task.module)
    given = check_names(module, task.args, task.position)
    args: dict[str, Any] = {}
    kinds: dict[str, str] = {}
    for field in module.fields.values():
        if field.name not in given:
            args[field.name] = field.default
            continue
        if task.module == "assert" and field.name == "that":
            args["that"] = _assertions(given["that"], scope)
            continue
        value = convert(module, field, scope.render(given[field.name]), task.args, task.position)
        kind = field.kind
        if kind is not None and value is not None:
            kinds[field.name] = kind
            value = _resolve(kind, value, task, play, scope, files)
        args[field.name] = value
    frame: dict[str, Any] = {"module": task.module, "args": args}
    if kinds:
        frame["kinds"] = kinds
    user = _user(task, play, scope)
    if user:
        frame["user"] = user
    environment = {**play.environment, **task.environment}
    if environment:
        frame["env"] = {key: str(value) for key, value in scope.render(environment).items()}
    if task.notify:
        frame.update(scope=play.scope, notify=[] if task.judged else list(task.notify))
    if task.ignore_errors or task.failed_when is not None:
        frame["go_on"] = True
    return frame


def _resolve(kind: str, value: Any, task: Task, play: Play, scope: Scope, files: Files) -> Any:
    if isinstance(value, list):
        return [_resolve(kind, one, task, play, scope, files) for one in value]
    where = task.position
    if kind == "source":
        return files.source(value, play.file, where)
    if kind == "template":
        return scope.render_file(files.template(value, play.file, where))
    if kind == "patch":
        return dict(files.patch(value))
    return value


def _assertions(that: Any, scope: Scope) -> list[dict[str, Any]]:
    """Each condition of an assert with its value: it is the controller that knows the names."""
    conditions = that if isinstance(that, list) else [that]
    return [{"assertion": str(condition), "holds": scope.truth(condition)} for condition in conditions]


def _user(task: Task, play: Play, scope: Scope) -> str | None:
    become = play.become if task.become is None else task.become
    if not become:
        return None
    if not isinstance(become, bool):
        become = str(scope.render(become)).lower() in ("true", "yes")
    return str(scope.render(task.become_user or play.become_user)) if become else None
