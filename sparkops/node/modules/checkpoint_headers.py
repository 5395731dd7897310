"""Say what the headers of a checkpoint hold: names, dtypes and shapes, without reading a weight.

Example:
    - name: What is in the checkpoint
      checkpoint_headers:
        path: ~/models/hf/Qwen3.6-35B-A3B-FP8
      register: headers
"""

from __future__ import annotations

from sparkops.node.api import Arguments, Failure, Node, Outcome, Path


class Args(Arguments):
    """path: the checkpoint's folder, or one *.safetensors file."""

    path: Path


def apply(args: Args, node: Node) -> Outcome:
    """Always ok, or a Failure that names the damaged file. Result: document (see sparkops.node.checkpoint)."""
    del node
    from sparkops.node import checkpoint
    from sparkops.node.safetensors import BadFile

    try:
        document = checkpoint.survey(args.path)
    except BadFile as error:
        raise Failure(f"no whole checkpoint at {args.path}:\n{error}", path=args.path) from None
    except OSError as error:
        raise Failure(f"cannot read {error.filename or args.path}: {error.strerror}", path=args.path) from error
    tensors = sum(group[3] for file in document["files"] for group in file["groups"])
    return Outcome.ok(f"{len(document['files'])} files, {tensors} tensors", document=document)
