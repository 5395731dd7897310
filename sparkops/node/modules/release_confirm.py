"""Confirm the current release: from now on it is what a node goes back to.

Example:
    - name: It serves
      release_confirm:
        home: /opt/sparkops
        service: vllm
"""

from __future__ import annotations

from sparkops.node import releases
from sparkops.node.api import Arguments, Failure, Node, Outcome, Path


class Args(Arguments):
    home: Path  # sparkops_home
    service: str  # the service's name
    release: int | None = None  # the one that is expected to be current: fails when the node has gone back meanwhile


def apply(args: Args, node: Node) -> Outcome:
    """Result: release."""
    folder = releases.service_folder(args.home, args.service)
    number = releases.linked(folder)
    if number is None:
        if node.check:
            return Outcome.unknown("there is no release yet")
        raise Failure(f"{args.service} has no release on this node; deploy one first")
    if args.release is not None and args.release != number:
        if node.check:
            return Outcome.changed(f"release {args.release} is confirmed", release=args.release)
        raise gone_back(args.release, number)
    if releases.linked(folder, "confirmed") == number and releases.deadline(folder, number) is None:
        return Outcome.ok(f"release {number} is confirmed", release=number)
    if not node.check:
        releases.confirm(folder, number)
        # Its trial may have ended between the look and the confirmation.
        now = releases.linked(folder)
        if now != number:
            raise gone_back(number, now)
    return Outcome.changed(f"release {number} is confirmed", release=number)


def gone_back(wanted: int, now: int | None) -> Failure:
    """It came too late."""
    return Failure(f"release {wanted} is not current any more: the node went back to {now} by itself")
