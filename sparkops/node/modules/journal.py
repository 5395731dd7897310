"""Read what a unit has logged, or follow it. Changes nothing.

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
    lines: int | None = 100  # at most these, the last ones; null: all, which only `since` should ask for
    since: str | None = None  # as journalctl --since takes it: "10 min ago", "2026-11-30 12:00"
    grep: str | None = None  # only lines that this regular expression (PCRE) is in
    follow: bool = False  # go on with what comes, and hand it on as it does; ends when the controller hangs up


def apply(args: Args, node: Node) -> Outcome:
    """Always ok. Result: lines (journalctl's short-iso-precise form); none when they were followed."""
    manager = systemd.Manager(node, args.scope)
    argv = ["journalctl", *manager.words, *words(args), "-u", systemd.unit_name(args.unit)]
    if args.follow:
        # Nobody can follow in a check: it would never end.
        if not node.check:
            done = node.run(argv, env=manager.environment(), each=node.tell)
            raise Failure(f"the journal ended: {systemd.said(done)}", rc=done.rc)
        return Outcome.ok(lines=[])
    done = node.run(argv, env=manager.environment(), timeout=60)
    # 1 without a word: nothing was found.
    if done.rc and (done.rc != 1 or done.err.strip() or args.grep is None):
        raise Failure(f"the journal cannot be read: {systemd.said(done)}", rc=done.rc)
    found = done.out.splitlines()
    if "-r" in argv:
        found.reverse()
    return Outcome.ok(lines=found if args.lines is None else found[-args.lines :])


def words(args: Args) -> list[str]:
    """journalctl's options. With --since, -n would count from there on (systemd 252): what is too much is cut here."""
    said = ["--no-pager", "-q", "-o", "short-iso-precise"]
    if args.since is not None:
        said += [f"--since={args.since}", *(["--no-tail"] if args.follow else [])]
    else:
        said += ["-n", "all" if args.lines is None else str(args.lines)]
    if args.grep is not None:
        # With -n, newer versions of journalctl give the newest first, whether asked to or not.
        said += [f"--grep={args.grep}", *(["-r"] if args.since is None and not args.follow else [])]
    return said + (["-f"] if args.follow else [])
