"""Stop with a clear message unless conditions hold.

Example:
    - name: Only what was tried
      assert:
        that:
          - ansible_architecture in ["aarch64", "x86_64"]
        fail_msg: sparkops was never tried on {{ ansible_architecture }}
"""

from __future__ import annotations

from sparkops.node.api import Arguments, Failure, Node, Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar


class Args(Arguments):
    """that: conditions, evaluated on the controller. quiet: leave the conditions out of the result.

    Here each is true or false, or [the condition's text, true or false].
    """

    that: list[Any]
    fail_msg: str = "Assertion failed"
    success_msg: str = "All assertions passed"
    quiet: bool = False
    aliases: ClassVar[dict[str, str]] = {"msg": "fail_msg"}


def apply(args: Args, _: Node) -> Outcome:
    """Always ok, or a Failure with assertion and evaluated_to of the first condition that does not hold."""
    for condition in args.that:
        text, holds = condition if isinstance(condition, list) else (str(condition), condition)
        if not holds:
            said = {} if args.quiet else {"assertion": text, "evaluated_to": False}
            raise Failure(args.fail_msg, **said)
    return Outcome.ok(args.success_msg)
