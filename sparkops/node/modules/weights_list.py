"""List the checkpoints on the node; nothing is read but names and times.

Example:
    - name: What weights are here
      weights_list:
        models_dir: ~/models/hf
        home: /opt/sparkops
      register: listed
"""

from __future__ import annotations

import os

from sparkops.node.api import Arguments, Node, Outcome, Path


class Args(Arguments):
    models_dir: Path  # where checkpoints are
    home: Path  # sparkops_home: its releases say which of them are served


def apply(args: Args, node: Node) -> Outcome:
    """Result: checkpoints, free (bytes on their disk)."""
    from sparkops.node import weights_there

    found = weights_there.there(os.path.abspath(args.models_dir), args.home, node)
    free = None
    if os.path.isdir(args.models_dir):
        disk = os.statvfs(args.models_dir)
        free = disk.f_bavail * disk.f_frsize
    return Outcome.ok(f"{len(found)} checkpoints", checkpoints=found, free=free)
