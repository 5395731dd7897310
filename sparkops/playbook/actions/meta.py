"""Tell the run itself something.

Example:
    - name: Restart now what is to be restarted
      meta: flush_handlers
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from sparkops.node.api import Arguments
from sparkops.playbook.action import Acted

if TYPE_CHECKING:
    from sparkops.playbook.scope import Scope


class Args(Arguments):
    # end_host, end_play, end_batch: no more of it, without a failure; noop: nothing
    what: Literal[
        "flush_handlers", "end_host", "end_play", "end_batch", "clear_facts", "noop",
        "reset_connection",
    ]  # fmt: skip

    free_form = "what"


def act(args: Args, scope: Scope) -> Acted:  # noqa: ARG001
    """Result: none of its own; the runner does it."""
    return Acted(control=args.what)
