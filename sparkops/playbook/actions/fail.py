"""Fail with a message.

Example:
    - name: Only on Sparks
      fail:
        msg: "{{ inventory_hostname }} is no Spark"
      when: ansible_architecture != 'aarch64'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparkops.node.api import Arguments
from sparkops.playbook.action import Acted

if TYPE_CHECKING:
    from sparkops.playbook.scope import Scope


class Args(Arguments):
    msg: str = "Failed as requested from task"  # what is said


def act(args: Args, scope: Scope) -> Acted:  # noqa: ARG001
    """Result: msg."""
    return Acted("failed", args.msg, {"msg": args.msg})
