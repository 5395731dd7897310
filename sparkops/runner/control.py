"""What actions ask of the runner: meta's words, and a pause."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from sparkops.errors import InputError
from sparkops.playbook.action import Acted
from sparkops.playbook.compile import Compiled
from sparkops.runner.program import Item

if TYPE_CHECKING:
    from sparkops.runner.walk import Walk


def obey(walk: Walk, acted: Acted) -> None:
    """Do what an action that has ended well asks for."""
    if acted.pause is not None:
        _pause(acted)
    if acted.control == "flush_handlers":
        walk.queue.appendleft(Item(None, mark="flush"))
    elif acted.control == "end_host":
        walk.queue.clear()
    elif acted.control in ("end_play", "end_batch"):
        walk.batch.stop()
    elif acted.control == "clear_facts":
        walk.state.facts.clear()
    elif acted.control == "reset_connection":
        walk.state.close()
        walk.state.session = None


def _pause(acted: Acted) -> None:
    if acted.prompt is not None and sys.stdin.isatty():
        input(f"{acted.prompt or 'Press enter to continue'} ")
    else:
        time.sleep(acted.pause or 0)


def retries(compiled: Compiled) -> tuple[int, float]:
    """(how often to try again, seconds between). Raises InputError."""
    task, scope = compiled.task, compiled.scope
    try:
        return max(0, int(scope.render(task.retries))), float(scope.render(task.delay))
    except (TypeError, ValueError):
        raise InputError("retries and delay must be numbers", where=task.position) from None
