"""Read a checkpoint whole, and fail when a byte is another than it was when it came.

A checkpoint that sparkops knows nothing of is taken as it is, and its hashes are kept for the next time.

Example:
    - name: The weights are what they were
      weights_verify:
        path: ~/models/hf/Qwen3.6-35B-A3B-FP8
"""

from __future__ import annotations

import os

from sparkops.node.api import Arguments, Failure, Node, Outcome, Path


class Args(Arguments):
    path: Path  # the checkpoint's folder


def apply(args: Args, node: Node) -> Outcome:
    """Result: path, files, bytes, content (a short hash over all); of a Failure also problems, by file."""
    from sparkops.node import weights_record as weights
    from sparkops.node import weights_there

    path = os.path.abspath(args.path)
    record = weights.Record.of(node.state_dir, path)
    known = record is not None
    if record is None:
        why = weights.looks_whole(path)
        if why:
            raise Failure(f"there is no checkpoint to verify: {why}", path=path)
        if node.check:
            return Outcome.ok("its hashes would be taken", path=path)
        record = weights.adopt(path, node)
    found = weights.rehash(record, list(record.files), node) if known else {}
    size = sum(one["size"] for one in record.files.values())
    facts = {"path": path, "files": len(record.files), "bytes": size, "content": weights_there.content(record.files)}
    if found:
        lines = [f"{name}: {why}" for name, why in found.items()]
        cure = "sparkops weights sync (from another node) or weights pull (from the hub) fetch just these"
        raise Failure("\n".join([f"{path} is not what it was:", *lines, cure]), problems=found, **facts)
    return Outcome.ok(f"{size / 1e9:.1f} GB {'as recorded' if known else 'hashed'}, {facts['content']}", **facts)
