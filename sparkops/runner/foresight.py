"""What can be known of a play before it runs: its facts task, its files of variables, and what is wrong with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sparkops.errors import InputError, InputErrors
from sparkops.playbook import modules
from sparkops.playbook.actions.include_vars import mapping
from sparkops.playbook.compile import compile_task
from sparkops.playbook.files import Files
from sparkops.playbook.model import Play, Task, Words
from sparkops.playbook.parse import task_file
from sparkops.playbook.scope import NeedsOthers, NeedsResult, Scope
from sparkops.playbook.template import Templar
from sparkops.runner.options import Options

SETUP = "setup"


def gathers(play: Play, options: Options) -> bool:
    """Whether a play gathers facts; `--skip-tags always` leaves them out, as in Ansible."""
    return bool(play.gather_facts) and "always" not in options.skip_tags


def gather(play: Play) -> Task:
    """The task that `gather_facts` stands for."""
    words = Words(tags=frozenset({"always"}), become=play.words.become, become_user=play.words.become_user)
    return Task(name="Gathering Facts", module=SETUP, args={}, position=play.position, file=play.file, words=words)


def vars_files(play: Play, scope: Scope, files: Files) -> dict[str, Any]:
    """The variables of the play's files, later ones winning; of a list of names the first that exists is read.

    Raises InputError.
    """
    found: dict[str, Any] = {}
    for given in play.vars_files:
        listed = given if isinstance(given, list) else [given]
        names = [str(scope.templar.render(name, scope.values)) for name in listed]
        found |= mapping(_first(names, play, files))
    return found


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


def foresee(play: Play, tasks: list[Task], scope: Scope, files: Files) -> list[InputError]:
    """What is wrong with the tasks that can be rendered before anything has run on the host."""
    given = {task.register for task in tasks if task.register} | _set_by(tasks)
    scope = scope.awaiting({name for name in given if name}, facts=True)
    # A file of variables that is read on the way may set any name: from there on nothing is certain.
    errors: list[InputError] = []
    for task in tasks:
        if task.module == "include_vars":
            break
        try:
            compiled = compile_task(task, play, scope, files)
            for step in compiled.steps:
                if step.acted is not None and step.acted.tasks_file is not None:
                    task_file(Path(step.acted.tasks_file), task.outer, _handlers(play), scope.render)
        except (NeedsResult, NeedsOthers):
            continue
        except InputErrors as several:
            errors += [error for error in several.errors if isinstance(error, InputError)]
        except InputError as error:
            errors.append(error)
    return errors


def _handlers(play: Play) -> frozenset[str]:
    return frozenset(name for handler in play.handlers for name in (handler.name, *handler.listen))


def _set_by(tasks: list[Task]) -> set[str]:
    """Names that set_fact sets on the way, and that a rescue sees."""
    names = {"ansible_failed_result", "ansible_failed_task"}
    for task in tasks:
        if modules.module(task.module).open_ended:
            names |= set(task.args)
    return names
