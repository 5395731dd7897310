"""List the releases of services on this node. Changes nothing.

Example:
    - name: What was deployed here
      release_list:
        home: /opt/sparkops
"""

from __future__ import annotations

import os

from sparkops.node import drift, releases
from sparkops.node.api import Arguments, Node, Outcome, Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Args(Arguments):
    home: Path  # sparkops_home
    service: str | None = None  # one service; left out, all that have a release here


def apply(args: Args, node: Node) -> Outcome:
    """Always ok. Result: releases, by service and number, newest first: service, release, current, state, recipe,
    engine, who, when, verb, kernel, driver, trial_ends (s since the epoch).

    state: confirmed (what a node goes back to), on trial, failed (a trial that nobody confirmed), unconfirmed (the
    first one, before it was), served (was confirmed once). None: not noted.
    """
    del node
    names = releases.services(args.home) if args.service is None else [args.service]
    return Outcome.ok(releases=[one for name in names for one in listed(args.home, name)])


def listed(home: str, service: str) -> list[dict[str, Any]]:
    """The releases of a service."""
    folder = releases.service_folder(home, service)
    current, confirmed = releases.linked(folder), releases.linked(folder, "confirmed")
    found = []
    for number in sorted(releases.numbers(folder), reverse=True):
        about = drift.document(os.path.join(folder, str(number), releases.META))
        ends = releases.deadline(folder, number)
        found.append(
            {
                "service": service,
                "release": number,
                "current": number == current,
                "state": state(number, current, confirmed, ends),
                **{name: about.get(name) for name in ("recipe", "engine", "who", "kernel", "driver")},
                "when": about.get("since"),
                "verb": about.get("command"),
                "trial_ends": ends,
            }
        )
    return found


def state(number: int, current: int | None, confirmed: int | None, ends: float | None) -> str:
    """A release's state; `ends` is the end of its trial, None for one that is not on trial."""
    import time

    if ends is not None:
        return "on trial" if number == current and ends > time.time() else "failed"
    if number == confirmed:
        return "confirmed"
    return "unconfirmed" if confirmed is None else "served"
