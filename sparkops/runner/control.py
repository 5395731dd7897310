"""What actions ask of the runner: meta's words, and a pause."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from sparkops.playbook.action import Acted
from sparkops.playbook.model import Task
from sparkops.runner.program import Item

if TYPE_CHECKING:
    from sparkops.runner.walk import Walk


# What meta does for all hosts at once, so that they meet before it.
FOR_ALL = ("end_play", "end_batch")


def for_all(task: Task) -> bool:
    """Whether a task is one that the first host does for all."""
    return task.words.run_once is not None or (task.module == "meta" and task.args.get("what") in FOR_ALL)


def obey(walk: Walk, item: Item, acted: Acted) -> None:
    """Do what an action that has ended well asks for."""
    if acted.pause is not None:
        _pause(walk, acted)
    if acted.control == "flush_handlers":
        walk.queue.appendleft(Item(None, mark="flush", order=item.order))
    elif acted.control == "end_host":
        walk.queue.clear()
    elif acted.control in FOR_ALL:
        walk.batch.stop(play=acted.control == "end_play")
    elif acted.control == "clear_facts":
        walk.state.facts.clear()
    elif acted.control == "reset_connection":
        walk.reset_connection()


def _pause(walk: Walk, acted: Acted) -> None:
    if acted.prompt is not None and sys.stdin.isatty():
        walk.context.prompt.ask(f"{acted.prompt or 'Press enter to continue'} ")
    else:
        walk.sleep(acted.pause or 0)
