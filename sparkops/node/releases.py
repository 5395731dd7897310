"""A service's releases on a node: numbered folders, the links `current` and `confirmed`, and the marker of one that
nobody has confirmed yet.

releases/<service>/<n>/unconfirmed holds a deadline (seconds since the epoch). Until it is taken away, the release is on
trial: the unit's guard and a watchdog go back to `confirmed` once the deadline has passed.
"""

from __future__ import annotations

import os

from sparkops.node import files

MARKER = "unconfirmed"
META = "release.json"
TEMP = ".sparkops-"


def numbers(folder: str) -> list[int]:
    """The numbers of the releases that there are."""
    try:
        return [int(name) for name in os.listdir(folder) if name.isdigit()]
    except FileNotFoundError:
        return []


def linked(folder: str, link: str = "current") -> int | None:
    """The release that `current` (or `confirmed`) points to; None when there is none."""
    try:
        target = os.readlink(os.path.join(folder, link))
    except FileNotFoundError:
        return None
    return int(target) if target.isdigit() and os.path.isdir(os.path.join(folder, target)) else None


def clean(folder: str) -> None:
    """Take away what runs that were killed have left."""
    from shutil import rmtree

    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if name.startswith(TEMP) and os.path.isdir(path) and not os.path.islink(path):
            rmtree(path)
        elif name.startswith(TEMP):
            os.unlink(path)


def point(folder: str, number: int, link: str = "current") -> None:
    """Move `current` (or `confirmed`) by one rename."""
    temp = os.path.join(folder, TEMP + os.urandom(6).hex())
    os.symlink(str(number), temp)
    os.rename(temp, os.path.join(folder, link))
    files.sync_folder(folder)


def deadline(folder: str, number: int) -> float | None:
    """When a release's trial ends; None when it is not on trial."""
    try:
        with open(os.path.join(folder, str(number), MARKER), encoding="ascii") as file:
            return float(file.read())
    except (FileNotFoundError, ValueError):
        return None


def confirm(folder: str, number: int) -> bool:
    """End a release's trial: it is what to go back to from now on. False when it was so already."""
    marker = os.path.join(folder, str(number), MARKER)
    done = linked(folder, "confirmed") == number and not os.path.exists(marker)
    if not done:
        # The link first: a power cut between the two leaves a release that is both, and goes back to itself.
        point(folder, number, "confirmed")
        if os.path.exists(marker):
            os.unlink(marker)
            files.sync_folder(os.path.dirname(marker))
    return not done


def service_folder(home: str, service: str) -> str:
    """Where a service's releases are."""
    return os.path.join(home, "releases", service)
