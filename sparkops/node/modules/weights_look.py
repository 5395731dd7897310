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
    repo: str = ""  # ORG/NAME that it should be; "": any
    revision: str = "main"  # of it: a branch, a tag or a commit. Another commit than a pinned one counts as absent


def apply(args: Args, node: Node) -> Outcome:
    """Result: path, present, problems (by file), files, bytes, source, staged (bytes of an unfinished transfer
    or graft), fabric, management (addresses), warnings.
    """
    from sparkops.node import incoming
    from sparkops.node import weights_record as weights

    path = os.path.abspath(args.path)
    looked = weights.look(path, node, args.repo, args.revision)
    if not looked["present"]:
        looked["staged"] += grafted_so_far(path)
    elif not node.check:
        incoming.forget_jobs(path, node)
    return Outcome.ok(weights.said(looked), fabric=args.fabric_address, management=management(), **looked)


def grafted_so_far(path: str) -> int:
    """The bytes of a draft that an unfinished graft has brought: who has most goes on with it."""
    from sparkops.node import draft, graft

    try:
        return os.path.getsize(os.path.join(graft.rest(path), "tree", draft.FILE))
    except OSError:
        return 0


def management() -> str:
    """The address at which the controller reached this node; without SSH they are one machine."""
    words = os.environ.get("SSH_CONNECTION", "").split()
    return words[2] if len(words) == 4 else "127.0.0.1"
