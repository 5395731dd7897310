"""A cgroup a node: without one, containers would share the slices of one another's systemd."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

from sparkops.errors import LabError


def roots(mountinfo: str) -> list[Path]:
    """Where the hierarchies that systemd uses are mounted: v2, and on older or hybrid machines v1's name=systemd."""
    found = []
    for line in mountinfo.splitlines():
        fields, _, filesystem = line.partition(" - ")
        kind, _, options = filesystem.split(" ", 2)
        if kind == "cgroup2" or (kind == "cgroup" and "name=systemd" in options.split(",")):
            found.append(Path(fields.split()[4]))
    return found


def cgroups(name: str) -> list[Path]:
    """The folders of the cgroup `name`, one a hierarchy."""
    return [root / name for root in roots(Path("/proc/self/mountinfo").read_text())]


def remove(folder: Path, timeout: float = 5.0) -> None:
    """Remove a cgroup and those below it; their processes have ended or are just ending. LabError when they do not."""
    deadline = time.monotonic() + timeout
    while folder.exists():
        for path, _, _ in os.walk(folder, topdown=False):
            with suppress(OSError):
                Path(path).rmdir()
        if time.monotonic() > deadline:
            raise LabError(f"the cgroup {folder} stays in use")
        time.sleep(0.01)
