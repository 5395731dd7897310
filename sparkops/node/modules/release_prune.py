"""Remove old releases of a service, and the engines that only they used.

Example:
    - name: Keep three
      release_prune:
        home: /opt/sparkops
        service: vllm
        keep: 3
"""

from __future__ import annotations

import os

from sparkops.node import releases
from sparkops.node.api import Arguments, Node, Outcome, Path


class Args(Arguments):
    home: Path  # sparkops_home
    service: str  # the service's name
    keep: int = 3  # the newest of them; the current, the confirmed and what rollback goes to stay in any case


def apply(args: Args, node: Node) -> Outcome:
    """Result: removed (numbers), engines (their folders' names)."""
    folder = releases.service_folder(args.home, args.service)
    there = sorted(releases.numbers(folder))
    now = releases.linked(folder)
    stay = {*there[-max(args.keep, 1) :], now, releases.linked(folder, "confirmed")}
    # Trials that failed push nothing out that has served.
    stay.add(releases.before(folder, now) if now else None)
    old = [number for number in there if number not in stay]
    top = os.path.join(args.home, "engines")
    engines = sorted(releases.engines(folder, old) - _all_used(args.home, folder, set(old))) if old else []
    engines += releases.leftovers(top)
    if not old and not engines:
        return Outcome.ok(removed=[], engines=[])
    if not node.check:
        releases.remove_folders([os.path.join(folder, str(number)) for number in old])
        releases.remove_folders([os.path.join(top, name) for name in engines])
    what = f"{len(old)} releases" + (f", {len(engines)} engines" if engines else "")
    return Outcome.changed(f"removed {what}", removed=old, engines=engines)


def _all_used(home: str, folder: str, gone: set[int]) -> set[str]:
    """The engines of all releases of all services but those that go."""
    used = set()
    for service in releases.services(home):
        other = releases.service_folder(home, service)
        used |= releases.engines(other, [n for n in releases.numbers(other) if other != folder or n not in gone])
    return used
