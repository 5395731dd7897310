"""The task files that plays name and no template chooses: what they hold is known before anything runs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from sparkops.playbook import modules
from sparkops.playbook.arguments import check_names
from sparkops.playbook.files import Files
from sparkops.playbook.model import Task, tasks_in
from sparkops.playbook.parse import Render, task_file

INCLUDE = "include_tasks"


def named(task: Task, files: Files) -> Path | None:
    """The file of an include_tasks; None where a template chooses it. Raises InputError when there is none."""
    name = check_names(modules.module(task.module), task.args, task.position)["file"]
    return None if not isinstance(name, str) or "{" in name else files.find(name, "tasks", task.file, task.position)


def followed(tasks: Iterable[Task], files: Files, handlers: frozenset[str], render: Render) -> tuple[list[Task], bool]:
    """The tasks and those of the files that they include, and so on; whether that is all, so that no file is chosen
    only as the run goes. Raises as playbook does.
    """
    found, waiting, seen, whole = [], list(tasks), set(), True
    while waiting:
        task = waiting.pop()
        found.append(task)
        if task.module != INCLUDE:
            continue
        path = named(task, files)
        whole = whole and path is not None
        if path is not None and path not in seen:
            seen.add(path)
            waiting += tasks_in(task_file(path, task.outer, handlers, render))
    return found, whole
