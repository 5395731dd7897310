"""Say something.

Example:
    - name: Tell what was found
      debug:
        msg: "the driver is {{ driver.driver_version }}"
"""

from __future__ import annotations

from sparkops.node.api import Arguments, Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from sparkops.node.api import Node


class Args(Arguments):
    msg: Any = "Hello world!"  # any value


def apply(args: Args, node: Node) -> Outcome:  # noqa: ARG001 (every module has both)
    """Give the message back; nothing is looked at or changed."""
    return Outcome("ok", args.msg if isinstance(args.msg, str) else "", result={"msg": args.msg})
