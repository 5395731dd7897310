"""A service's releases on a node: numbered folders, the links `current` and `confirmed`, and the marker of one that
nobody has confirmed yet.

releases/<service>/<n>/unconfirmed holds a deadline (seconds since the epoch) and a boot's id. Until it goes, the
release is on trial: the unit's guard and a watchdog go back to `confirmed` once the deadline has passed.
"""

from __future__ import annotations

import os

from sparkops.node import files
from sparkops.node.api import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MARKER = "unconfirmed"
# How often the guard has seen a release on trial start, a line each.
STARTS = "starts"
META = "release.json"
# Files of a release that say what its others were when they were written, and the unit as it was rendered.
SUMS = "SHA256SUMS"
UNIT = "unit"
TEMP = ".sparkops-"
LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")


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


def before(folder: str, number: int) -> int | None:
    """The newest release below this one that has ever served: one that never got past its trial is nothing to go
    back to.
    """
    return max((n for n in numbers(folder) if n < number and deadline(folder, n) is None), default=None)


def unit(folder: str, number: int) -> str | None:
    """A release's unit as it was rendered; None: an older sparkops has not kept it."""
    try:
        with open(os.path.join(folder, str(number), UNIT), encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except FileNotFoundError:
        return None


def user(unit: str | None) -> str | None:
    """Who a unit's service runs as; None: as the manager's own user, or not known."""
    lines = (unit or "").splitlines()
    return next((line[len("User=") :] for line in lines if line.startswith("User=")), None)


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
            return float(file.read().split()[0])
    except (FileNotFoundError, ValueError, IndexError):
        return None


def marker(deadline: float) -> str:
    """A marker's text: the deadline, and the boot in which the trial began. The guard ends a trial with its boot: the
    watchdog has not lived through it.
    """
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot = file.read().strip()
    except OSError:
        boot = "unknown"
    return f"{deadline:.0f} {boot}\n"


def begin_trial(path: str, seconds: float) -> None:
    """Put a release (its folder) on trial for so long from now; one that is already gets all of it anew."""
    import time

    starts = os.path.join(path, STARTS)
    if os.path.exists(starts):
        os.unlink(starts)
    files.write(os.path.join(path, MARKER), marker(time.time() + seconds).encode(), 0o644)


def confirm(folder: str, number: int) -> bool:
    """End a release's trial: it is what to go back to from now on. False when it was so already."""
    done = linked(folder, "confirmed") == number and deadline(folder, number) is None
    if not done:
        # The link first: a power cut between the two leaves a release that is both, and goes back to itself.
        point(folder, number, "confirmed")
        end_trial(folder, number)
    return not done


def end_trial(folder: str, number: int) -> None:
    """Take a release's marker away, if it has one."""
    path = os.path.join(folder, str(number), MARKER)
    if os.path.exists(path):
        os.unlink(path)
        files.sync_folder(os.path.dirname(path))


def confirmed(folder: str, number: int | None) -> bool:
    """Whether somebody has seen this release serve: it is on no trial, and the first one of all has been confirmed."""
    return number is not None and deadline(folder, number) is None and linked(folder, "confirmed") is not None


def unit_of(service: str) -> str:
    """The name of a service's unit, also of one that is called `a.socket`."""
    return f"sparkops-{service}.service"


def service_folder(home: str, service: str) -> str:
    """Where a service's releases are."""
    return os.path.join(home, "releases", service)


def services(home: str) -> list[str]:
    """The services that have releases here."""
    top = os.path.join(home, "releases")
    names = sorted(os.listdir(top)) if os.path.isdir(top) else []
    return [name for name in names if os.path.isdir(os.path.join(top, name)) and not name.startswith(".")]


def engines(folder: str, of: list[int] | None = None) -> set[str]:
    """The engines (folder names) that a service's releases, all or some, name in release.json."""
    import json

    found = set()
    for number in numbers(folder) if of is None else of:
        try:
            about = json.loads(files.read(os.path.join(folder, str(number), META)))
        except (OSError, ValueError):
            continue
        name = engine_of(about) if isinstance(about, dict) else None
        if name:
            found.add(name)
    return found


def engine_of(about: dict[str, Any]) -> str | None:
    """The engine (a folder's name) that a release.json names."""
    name = about.get("engine")
    good = isinstance(name, str) and name and os.sep not in name and not name.startswith(".")
    return name if good else None


def sums(text: str) -> dict[str, str]:
    """{name: sha256} of sha256sum(1)'s lines."""
    pairs = (line.partition("  ") for line in text.splitlines())
    return {name: digest for digest, _, name in pairs if name}


def remove_folders(paths: list[str]) -> None:
    """Out of their names first, so that none is ever there in part. Also what of them a killed run has left."""
    from shutil import rmtree

    for path in paths:
        gone = leftover(path)
        if os.path.isdir(gone):
            rmtree(gone)
        if os.path.isdir(path):
            os.rename(path, gone)
            rmtree(gone)


def leftover(path: str) -> str:
    """Where a folder is while it is being removed."""
    return os.path.join(os.path.dirname(path), TEMP + os.path.basename(path))


def leftovers(top: str) -> list[str]:
    """What removals that were killed have left in a folder; an engine's is 10 GB."""
    return sorted(name for name in os.listdir(top) if name.startswith(TEMP)) if os.path.isdir(top) else []


def check_name(what: str, name: str) -> None:
    """Raises Failure for a name that is no plain file name."""
    if not name or not LETTERS.issuperset(name) or name[0] in ".-":
        raise Failure(f"{what}: {name!r} must be letters, digits and _.- with neither . nor - first")
