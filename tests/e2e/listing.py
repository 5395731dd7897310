"""Everything that can be seen to change on a node: its files and its units."""

from __future__ import annotations

import json
from typing import Any

from tests.e2e.nodes import Nodes

# Without times of access, and without what a node writes by itself.
FILES = """
import json, os
skipped = {"/proc", "/sys", "/run", "/var/log", "/dev", "/tmp"}
found = {}
def look(folder):
    for entry in os.scandir(folder):
        if entry.path in skipped:
            continue
        now = entry.stat(follow_symlinks=False)
        target = os.readlink(entry.path) if entry.is_symlink() else None
        found[entry.path] = [oct(now.st_mode), now.st_uid, now.st_gid, now.st_size, now.st_mtime_ns, target]
        if entry.is_dir(follow_symlinks=False):
            look(entry.path)
look("/")
print(json.dumps(found))
"""
SHOW = ("systemctl", "show", "*.service", "--property=Id,MainPID,ActiveEnterTimestampMonotonic")
# A login starts and ends these.
LOGIN = ("user@", "user-runtime-dir@")

Listing = dict[str, Any]


def listing(nodes: Nodes, node: str) -> Listing:
    """Mode, owner, size, mtime and target of each file by its path; start time and main process of each unit."""
    files: Listing = json.loads(nodes.on(node, "python3", "-c", FILES))
    units = {}
    for block in nodes.on(node, *SHOW).strip().split("\n\n"):
        shown = dict(line.split("=", 1) for line in block.splitlines())
        if not shown["Id"].startswith(LOGIN):
            units[shown["Id"]] = shown
    assert len(files) > 1000
    assert "ssh.service" in units
    return {**files, **units}


def differences(before: Listing, after: Listing, state: bool = False) -> dict[str, Any]:
    """What differs, as (before, after); state/ folders only when `state` asks for them."""
    names = [name for name in sorted({*before, *after}) if state or "/state/" not in f"{name}/"]
    return {name: (before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)}
