"""Fail unless conditions hold.

Example:
    - name: There is room for the weights
      assert:
        that:
          - ansible_memtotal_mb > 100000
        fail_msg: this node has too little memory
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparkops.node.api import Arguments
from sparkops.playbook.action import Acted, Condition

if TYPE_CHECKING:
    from sparkops.playbook.scope import Scope


class Args(Arguments):
    that: list[Condition]  # all must hold
    fail_msg: str = "Assertion failed"  # said when one does not
    success_msg: str = "All assertions passed"  # said when all do
    quiet: bool = False  # kept for Ansible's playbooks

    aliases = {"msg": "fail_msg"}


def act(args: Args, scope: Scope) -> Acted:
    """Result: msg; for a failure also assertion and evaluated_to."""
    for condition in args.that:
        if not scope.truth(condition):
            result = {"assertion": str(condition), "evaluated_to": False, "msg": args.fail_msg}
            return Acted("failed", f"{args.fail_msg}: {condition}", result)
    return Acted(result={"msg": args.success_msg})
