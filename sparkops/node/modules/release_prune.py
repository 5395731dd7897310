"""Remove old releases of a service, and the engines that only they used.

Example:
    - name: Keep three
      release_prune:
        home: /opt/sparkops
        service: vllm
        keep: 3
"""

from __future__ import annotations

import json
import os

from sparkops.node import files, releases
from sparkops.node.api import Arguments, Node, Outcome, Path


class Args(Arguments):
    home: Path  # sparkops_home
    service: str  # the service's name
    keep: int = 3  # the newest of them; the current and the confirmed one stay in any case


def apply(args: Args, node: Node) -> Outcome:
    """Result: removed (numbers), engines (their folders' names)."""
    folder = releases.service_folder(args.home, args.service)
    there = sorted(releases.numbers(folder))
    stay = {*there[-max(args.keep, 1) :], releases.linked(folder), releases.linked(folder, "confirmed")}
    old = [number for number in there if number not in stay]
    if not old:
        return Outcome.ok(removed=[], engines=[])
    engines = sorted(_engines(folder, old) - _all_used(args.home, folder, set(old)))
    if not node.check:
        _remove([os.path.join(folder, str(number)) for number in old])
        _remove([os.path.join(args.home, "engines", name) for name in engines])
    what = f"{len(old)} releases" + (f", {len(engines)} engines" if engines else "")
    return Outcome.changed(f"removed {what}", removed=old, engines=engines)


def _engines(folder: str, numbers: list[int]) -> set[str]:
    """The engines (folder names) that releases name in release.json."""
    found = set()
    for number in numbers:
        try:
            about = json.loads(files.read(os.path.join(folder, str(number), releases.META)))
        except (OSError, ValueError):
            continue
        name = about.get("engine") if isinstance(about, dict) else None
        if isinstance(name, str) and name and os.sep not in name and not name.startswith("."):
            found.add(name)
    return found


def _all_used(home: str, folder: str, gone: set[int]) -> set[str]:
    """The engines of all releases of all services but those that go."""
    top, used = os.path.join(home, "releases"), set()
    for service in os.listdir(top):
        other = os.path.join(top, service)
        if os.path.isdir(other):
            used |= _engines(other, [n for n in releases.numbers(other) if other != folder or n not in gone])
    return used


def _remove(paths: list[str]) -> None:
    """Out of their names first, so that none is ever there in part."""
    from shutil import rmtree

    for path in paths:
        if os.path.isdir(path):
            gone = os.path.join(os.path.dirname(path), releases.TEMP + os.path.basename(path))
            os.rename(path, gone)
            rmtree(gone)
