"""Point `current` at an earlier release. Nothing is built or fetched: it is all there still.

Example:
    - name: Back to what served before
      release_back:
        home: /opt/sparkops
        service: vllm
"""

from __future__ import annotations

from sparkops.node import releases
from sparkops.node.api import Arguments, Failure, Node, Outcome, Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal


class Args(Arguments):
    """to: a number, `before` (the newest below the current one that has ever served), or `confirmed` (the last that
    was confirmed).
    """

    home: Path
    service: str
    to: int | Literal["before", "confirmed"] = "before"


def apply(args: Args, node: Node) -> Outcome:
    """Result: release (now current), previous, warnings. One that is named is on trial no more; the same is ok."""
    folder = releases.service_folder(args.home, args.service)
    there, now = sorted(releases.numbers(folder)), releases.linked(folder)
    if now is None:
        raise Failure(f"{args.service} has no release on this node; there is nothing to go back to")
    if args.to == "before":
        # One that never got past its trial is nothing to go back to.
        served = [number for number in there if number < now and releases.deadline(folder, number) is None]
        goal = max(served, default=None)
    elif args.to == "confirmed":
        goal = releases.linked(folder, "confirmed")
    else:
        goal = args.to if args.to in there else None
    if goal is None:
        have = ", ".join(map(str, there))
        raise Failure(f"{args.service} has no release {args.to} to go back to; it is at {now}, and there are: {have}")
    named = isinstance(args.to, int)
    if goal == now:
        said = f"release {now} is current already"
        return Outcome.ok(said, release=now, previous=now, warnings=[said] if named else [])
    unseen = named and releases.deadline(folder, goal) is not None
    warnings = [f"release {goal} has never been confirmed: nobody has seen it serve here"] if unseen else []
    if not node.check:
        if args.to != "confirmed":
            releases.end_trial(folder, goal)
        releases.point(folder, goal)
    return Outcome.changed(f"release {now} -> {goal}", release=goal, previous=now, warnings=warnings)
