"""What `sparkops play --list-hosts --list-tasks --list-tags` print; nothing is contacted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from sparkops.playbook.model import Play, tasks_in
from sparkops.runner.options import Options

SETS = ("hosts", "tasks", "tags")


def document(plays: Iterable[tuple[Play, list[str]]], options: Options, wanted: Iterable[str]) -> list[dict[str, Any]]:
    """A mapping a play: its name, and of hosts, tasks and tags those that are `wanted`."""
    return [_play(play, hosts, options, set(wanted)) for play, hosts in plays]


def _play(play: Play, hosts: list[str], options: Options, wanted: set[str]) -> dict[str, Any]:
    tasks = [task for section in play.sections for task in tasks_in(section) if options.selects(task)]
    found: dict[str, Any] = {"play": play.name, "pattern": play.hosts, "tags": sorted(play.words.tags)}
    if "hosts" in wanted:
        found["hosts"] = hosts
    if "tasks" in wanted:
        found["tasks"] = [
            {"name": task.name, "source": str(task.position), "tags": sorted(task.words.tags)} for task in tasks
        ]
    if "tags" in wanted:
        found["task_tags"] = sorted({tag for task in tasks for tag in task.words.tags})
    return found


def lines(listed: list[dict[str, Any]]) -> Iterator[str]:
    """The same for people."""
    for number, play in enumerate(listed, 1):
        yield f"play #{number} ({play['pattern']}): {play['play']}" + _tags(play["tags"])
        if "hosts" in play:
            yield f"  hosts ({len(play['hosts'])}):"
            yield from (f"    {name}" for name in play["hosts"])
        if "tasks" in play:
            yield "  tasks:"
            yield from (f"    {task['name']}{_tags(task['tags'])}  {task['source']}" for task in play["tasks"])
        if "task_tags" in play:
            yield f"  task tags: [{', '.join(play['task_tags'])}]"


def _tags(tags: list[str]) -> str:
    return f"  TAGS: [{', '.join(tags)}]" if tags else ""
