"""Remove all releases of a service, its remembered speeds, and with `engines` the engines that no other one uses.

Example:
    - name: Nothing of it stays
      release_remove:
        home: /opt/sparkops
        service: vllm
"""

from __future__ import annotations

import os

from sparkops.node import files, releases, speed_record
from sparkops.node.api import Arguments, Node, Outcome, Path


class Args(Arguments):
    home: Path  # sparkops_home
    service: str  # the service's name
    engines: bool = False  # also engines that no release names any more, and with the last service uv and its cache


def apply(args: Args, node: Node) -> Outcome:
    """Result: removed (paths)."""
    releases.check_name("service", args.service)
    folder = releases.service_folder(args.home, args.service)
    folders = [folder] if os.path.isdir(folder) or os.path.isdir(releases.leftover(folder)) else []
    if args.engines:
        folders += _engines(args.home, args.service)
    speeds = speed_record.path(node.state_dir, args.service)
    gone = [*folders, *([speeds] if os.path.exists(speeds) else [])]
    if not gone:
        return Outcome.ok(removed=[])
    if not node.check:
        files.discard(speeds)
        releases.remove_folders(folders)
    return Outcome.changed("removed " + ", ".join(gone), removed=gone)


def _engines(home: str, service: str) -> list[str]:
    others = [name for name in releases.services(home) if name != service]
    used = {engine for name in others for engine in releases.engines(releases.service_folder(home, name))}
    top = os.path.join(home, "engines")
    names = sorted(os.listdir(top)) if os.path.isdir(top) else []
    unused = [os.path.join(top, name) for name in names if name not in used]
    if others:
        return unused
    return [path for name in ("engines", "bin", "cache") if os.path.isdir(path := os.path.join(home, name))]
