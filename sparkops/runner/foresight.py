"""What can be known of a play before it runs: its facts task, its files of variables, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sparkops.errors import InputError, InputErrors, UndefinedName
from sparkops.playbook import modules
from sparkops.playbook.actions.include_vars import mapping
from sparkops.playbook.compile import compile_task
from sparkops.playbook.files import Files
from sparkops.playbook.includes import INCLUDE, followed, named
from sparkops.playbook.model import Play, Step, Task, Words, tasks_in
from sparkops.playbook.parse import task_file
from sparkops.playbook.scope import NeedsOthers, NeedsResult, Scope
from sparkops.playbook.template import Templar
from sparkops.runner.options import Options

SETUP = "setup"


def gathers(play: Play, options: Options) -> bool:
    """Whether a play gathers facts."""
    return bool(play.gather_facts) and options.selects(gather(play))


def gather(play: Play) -> Task:
    """The task that `gather_facts` stands for."""
    # As in Ansible, always, unless the play has tags of its own.
    tags = play.words.tags or frozenset({"always"})
    words = Words(tags=tags, become=play.words.become, become_user=play.words.become_user)
    return Task(name="Gathering Facts", module=SETUP, args={}, position=play.position, file=play.file, words=words)


def vars_files(play: Play, scope: Scope, files: Files, found: dict[str, Any]) -> None:
    """Read the play's files into `found`, which the scope sees: later ones win, and may be named by what earlier ones
    say; of a list of names the first that exists is read. Raises InputError.
    """
    for given in play.vars_files:
        listed = given if isinstance(given, list) else [given]
        names = [str(scope.templar.render(name, scope.values)) for name in listed]
        found.update(mapping(_first(names, play, files)))


def _first(names: list[str], play: Play, files: Files) -> Path:
    for name in names[:-1]:
        try:
            return files.find(name, "vars", play.file, play.position)
        except InputError:
            continue
    return files.find(names[-1], "vars", play.file, play.position)


def syntax_errors(tasks: list[Task], templar: Templar) -> list[InputError]:
    """The templates and conditions that are none, each with its position."""
    found: list[InputError] = []
    for task in tasks:
        module = modules.module(task.module)
        conditions = [*task.words.when, *(task.changed_when or ()), *(task.failed_when or ()), *(task.until or ())]
        values: list[Any] = [task.name, task.loop, dict(task.words.vars), list(task.words.environment)]
        for name, value in task.args.items():
            field = module.fields.get(module.aliases.get(name, name))
            if field is not None and field.kind == "condition":
                conditions += value if isinstance(value, list) else [value]
            else:
                values.append(value)
        for look, several in ((templar.condition_names, conditions), (templar.names, values)):
            for value in several:
                try:
                    look(value)
                except InputError as error:
                    error.where = error.where or task.position
                    found.append(error)
    return found


@dataclass
class Ahead:
    """What tasks will have done before others: names that they register or set. open: some may set any name, so that
    nothing is certain any more. reaches: the host's first task is one of the node's, whatever comes.
    """

    names: set[str] = field(default_factory=lambda: {"ansible_failed_result", "ansible_failed_task"})
    open: bool = False
    reaches: bool | None = None

    def add(self, tasks: Iterable[Task]) -> None:
        """Tasks that will run."""
        for task in tasks:
            if task.register:
                self.names.add(task.register)
            if modules.module(task.module).open_ended:
                self.names |= task.args.keys()


def foresee(play: Play, tasks: list[Task], scope: Scope, files: Files, ahead: Ahead) -> list[InputError]:
    """What is wrong with the tasks that can be rendered before anything has run on the host."""
    ahead.add([*tasks_in(steps_of(play)), *play.handlers])
    certain = set(map(id, tasks)) - _forgiven(steps_of(play), False) - set(map(id, play.handlers))
    errors: list[InputError] = []
    seen = scope.awaiting(ahead.names, facts=True)
    for task in tasks:
        first, ahead.reaches = ahead.reaches is None, bool(ahead.reaches)
        if ahead.open or task.module == "include_vars":
            ahead.open = True
            break
        try:
            compiled = compile_task(task, play, seen, files)
            if first:
                ahead.reaches = bool(compiled.steps) and not compiled.local and not compiled.delegated
            for step in compiled.steps:
                if step.acted is not None and step.acted.tasks_file is not None:
                    _look_into(Path(step.acted.tasks_file), task, play, scope, ahead, files)
                    seen = scope.awaiting(ahead.names, facts=True)
        except (NeedsResult, NeedsOthers):
            path = named(task, files) if task.module == INCLUDE else None
            if path is not None:
                _look_into(path, task, play, scope, ahead, files)
                seen = scope.awaiting(ahead.names, facts=True)
            ahead.open = ahead.open or (path is None and task.module == INCLUDE)
        except InputErrors as several:
            errors += [error for error in several.errors if isinstance(error, InputError)]
        except UndefinedName as error:
            # As in Ansible, it fails the task, which may be what a rescue is for.
            errors += [error] if id(task) in certain else []
        except InputError as error:
            errors.append(error)
    return errors


def steps_of(play: Play) -> tuple[Step, ...]:
    """A play's tasks and blocks."""
    return tuple(step for section in play.sections for step in section)


def _look_into(path: Path, task: Task, play: Play, scope: Scope, ahead: Ahead, files: Files) -> None:
    """A file that will be included. Raises InputError, InputErrors."""
    inside, whole = followed(
        tasks_in(task_file(path, task.outer, _handlers(play), scope.render)), files, _handlers(play), scope.render
    )
    ahead.add(inside)
    ahead.open = ahead.open or not whole or any(one.module == "include_vars" for one in inside)


def _forgiven(steps: tuple[Step, ...], inside: bool) -> set[int]:
    """The tasks whose failure the playbook reckons with, and those that run only after one."""
    found: set[int] = set()
    for step in steps:
        if isinstance(step, Task):
            found |= {id(step)} if inside or step.words.ignore_errors else set()
        else:
            found |= _forgiven(step.block, inside or bool(step.rescue))
            found |= _forgiven(step.rescue, True) | _forgiven(step.always, inside)
    return found


def _handlers(play: Play) -> frozenset[str]:
    return frozenset(name for handler in play.handlers for name in (handler.name, *handler.listen))
