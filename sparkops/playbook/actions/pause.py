"""Wait, or ask the person at the terminal to say when.

Example:
    - name: Give it a moment
      pause:
        seconds: 5
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparkops.errors import InputError
from sparkops.node.api import Arguments
from sparkops.playbook.action import Acted

if TYPE_CHECKING:
    from sparkops.playbook.scope import Scope


class Args(Arguments):
    seconds: float | None = None  # how long
    minutes: float | None = None  # how long; wins over seconds
    prompt: str | None = None  # asked for when there is a terminal and no time is given


# Seconds beyond which nobody waits.
MOST = 1e9


def act(args: Args, scope: Scope) -> Acted:  # noqa: ARG001
    """Result: none of its own; the runner waits."""
    seconds = args.seconds if args.minutes is None else args.minutes * 60
    if seconds is not None and not 0 <= seconds < MOST:
        raise InputError(f"a pause of {seconds} s never ends")
    return Acted(msg=args.prompt or "", pause=seconds or 0, prompt=None if seconds else args.prompt or "")
