"""Say whether a checkpoint is on the node, and where the node can be reached by others that copy from it.

Nothing is read but names and times: a file that has changed since it was hashed is hashed again.

Example:
    - name: Are the weights here
      weights_look:
        path: ~/models/hf/Qwen3.6-35B-A3B-FP8
      register: weights
"""

from __future__ import annotations

import os

from sparkops.node.api import Arguments, Node, Outcome, Path


class Args(Arguments):
    path: Path  # the checkpoint's folder
    fabric_address: str = ""  # the node's address in the fast network, if it is in one


def apply(args: Args, node: Node) -> Outcome:
    """Result: path, present, problems (by file), files, bytes, source, staged (bytes of an unfinished transfer),
    fabric, management (addresses).
    """
    from sparkops.node import incoming
    from sparkops.node import weights_record as weights

    path = os.path.abspath(args.path)
    looked = weights.look(path, node)
    if looked["present"] and not node.check:
        incoming.forget_jobs(path, node)
    return Outcome.ok(weights.said(looked), fabric=args.fabric_address, management=management(), **looked)


def management() -> str:
    """The address at which the controller reached this node; without SSH they are one machine."""
    words = os.environ.get("SSH_CONNECTION", "").split()
    return words[2] if len(words) == 4 else "127.0.0.1"
