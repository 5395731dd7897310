"""The mounts below a folder."""

from __future__ import annotations

import re
from pathlib import Path

from sparkops.lab.nspawn.host import call


def mount_points(mountinfo: str, folder: Path) -> list[Path]:
    """The mount points below `folder`, the last mounted first. mountinfo: the text of /proc/self/mountinfo."""
    points = [Path(_unescape(line.split(" ")[4])) for line in mountinfo.splitlines()]
    return [point for point in reversed(points) if folder in point.parents]


def unmount_below(folder: Path) -> None:
    """Unmount everything below `folder`. LabError when something there is in use."""
    for point in mount_points(Path("/proc/self/mountinfo").read_text(), folder):
        call("umount", point)


def _unescape(text: str) -> str:
    r"""A path as the kernel writes it: blanks and backslashes as \040."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)
