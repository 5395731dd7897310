"""Check that a checkpoint is on the node, whole.

Example:
    - name: The weights are here
      checkpoint_present:
        path: ~/models/hf/Qwen3.6-35B-A3B-FP8
        source: hf:Qwen/Qwen3.6-35B-A3B-FP8
"""

from __future__ import annotations

import os

from sparkops.node.api import Arguments, Failure, Node, Outcome, Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

INDEX = "model.safetensors.index.json"


class Args(Arguments):
    """path: the checkpoint's folder. source: hf:ORG/NAME if it can be fetched, for the message."""

    path: Path
    source: str = ""


def apply(args: Args, node: Node) -> Outcome:
    """Always ok, or a Failure that says what is missing. Result: path, files, tensors, size (bytes of the weights)."""
    try:
        names = sorted(os.listdir(args.path))
    except NotADirectoryError:
        raise failure(args, [f"{args.path} is a file, not a folder"]) from None
    except FileNotFoundError:
        raise failure(args, ["there is no such folder"]) from None
    except OSError as error:
        raise Failure(f"cannot list {args.path}: {error.strerror}", path=args.path) from error
    problems = [] if "config.json" in names else ["config.json is missing"]
    weights = [name for name in names if name.endswith(".safetensors")]
    if not weights:
        problems.append("there is no *.safetensors file")
    problems += [f"{name} is missing ({INDEX} lists it)" for name in listed(args.path, names) if name not in names]
    tensors = size = 0
    for done, name in enumerate(weights):
        node.progress(done, len(weights), "files", name)
        count, problem = look(os.path.join(args.path, name))
        tensors += count
        problems += [f"{name}: {problem}"] if problem else []
        size += os.path.getsize(os.path.join(args.path, name)) if not problem else 0
    if problems:
        raise failure(args, problems)
    return Outcome.ok(
        f"{len(weights)} files, {tensors} tensors", path=args.path, files=weights, tensors=tensors, size=size
    )


def look(path: str) -> tuple[int, str]:
    """The number of tensors of a file, and what is wrong with it ("": nothing)."""
    from sparkops.node import safetensors

    try:
        return safetensors.check_whole(path), ""
    except safetensors.BadFile as error:
        return 0, str(error)
    except OSError as error:
        return 0, error.strerror or str(error)


def listed(folder: str, names: list[str]) -> list[str]:
    """The files that the index names; [] without an index. Raises Failure when it can't be read."""
    if INDEX not in names:
        return []
    import json

    from sparkops.node import safetensors

    path = os.path.join(folder, INDEX)
    try:
        with safetensors.Passing(path) as file:
            index: Any = json.loads(file.read())
        return sorted(set(map(str, index["weight_map"].values())))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise Failure(f"{path} is no index of a checkpoint; fetch it again", path=path) from None
    except OSError as error:
        raise Failure(f"cannot read {path}: {error.strerror}", path=path) from error


def failure(args: Args, problems: list[str]) -> Failure:
    """The Failure for a checkpoint that is not whole."""
    from shlex import quote

    if args.source.startswith("hf:"):
        cure = f"mend it with: sparkops weights pull {quote(args.source[3:])} NODE"
    else:
        cure = "its source is not published: give model_source, or bring it with: sparkops weights push DIR"
    lines = [f"no whole checkpoint at {args.path}:", *(f"- {problem}" for problem in problems[:8]), cure]
    return Failure("\n".join(lines), path=args.path, problems=problems)
