"""Read what a unit has logged. Changes nothing.

Example:
    - name: The last lines
      journal:
        unit: sparkops-vllm
        lines: 100
"""

from __future__ import annotations

from sparkops.node import systemd
from sparkops.node.api import Arguments, Failure, Node, Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal


class Args(Arguments):
    unit: str  # the unit's name
    scope: Literal["system", "user"] = "system"
    lines: int = 100  # at most these, the last ones
    since: str | None = None  # as journalctl --since takes it: "10 min ago", "2026-11-30 12:00"


def apply(args: Args, node: Node) -> Outcome:
    """Always ok. Result: lines (journalctl's short-iso form)."""
    manager = systemd.Manager(node, args.scope)
    argv = ["journalctl", *manager.words, "--no-pager", "-q", "-o", "short-iso", "-n", str(args.lines)]
    if args.since is not None:
        argv.append(f"--since={args.since}")
    done = node.run([*argv, "-u", systemd.unit_name(args.unit)], env=manager.environment(), timeout=60)
    if done.rc:
        raise Failure(f"the journal cannot be read: {systemd.said(done)}", rc=done.rc)
    return Outcome.ok(lines=done.out.splitlines())
