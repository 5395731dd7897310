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
    from typing import Any, Literal


class Args(Arguments):
    """to: a number, `before` (the newest below the current one that has ever served), or `confirmed` (the last that
    was confirmed).
    """

    home: Path
    service: str
    to: int | Literal["before", "confirmed"] = "before"


def apply(args: Args, node: Node) -> Outcome:
    """Result: release (now current), previous, warnings, unit (its unit's text; None: not kept), user (who that runs
    as; None: it does not say). One that is named is on trial no more; the same is ok.
    """
    folder = releases.service_folder(args.home, args.service)
    there, now = sorted(releases.numbers(folder)), releases.linked(folder)
    if now is None:
        raise Failure(f"{args.service} has no release on this node; there is nothing to go back to")
    if args.to == "before":
        goal = releases.before(folder, now)
    elif args.to == "confirmed":
        goal = releases.linked(folder, "confirmed")
    else:
        goal = args.to if args.to in there else None
    if goal is None:
        have = ", ".join(map(str, there))
        raise Failure(f"{args.service} has no release {args.to} to go back to; it is at {now}, and there are: {have}")
    named = isinstance(args.to, int)
    unit = releases.unit(folder, goal)
    said: dict[str, Any] = {"release": goal, "previous": now, "unit": unit, "user": releases.user(unit)}
    if goal == now:
        there_already = f"release {now} is current already"
        return Outcome.ok(there_already, **said, warnings=[there_already] if named else [])
    unseen = named and releases.deadline(folder, goal) is not None
    warnings = [f"release {goal} has never been confirmed: nobody has seen it serve here"] if unseen else []
    if not node.check:
        if args.to != "confirmed":
            releases.end_trial(folder, goal)
        releases.point(folder, goal)
    return Outcome.changed(f"release {now} -> {goal}", **said, warnings=warnings)
