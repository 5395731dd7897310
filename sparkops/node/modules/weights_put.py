"""Bring a checkpoint from the controller to the node, for fleets that reach no hub; others copy it from there.

A file that came whole in a run before is not sent again. Each one's hash is checked on arrival.

Example:
    - name: Bring the weights
      weights_put:
        path: ~/models/hf/Qwen3.6-35B-A3B-FP8
        names: [config.json, model.safetensors]
        files: [/usb/Qwen/config.json, /usb/Qwen/model.safetensors]
"""

from __future__ import annotations

import os

from sparkops.node.api import Arguments, Failure, Node, Outcome, Path, Source


class Args(Arguments):
    path: Path  # the checkpoint's folder
    names: list[str]  # the files' names within it
    files: list[Source]  # the files, in the same order
    source: str = ""  # where they come from, for the record


def apply(args: Args, node: Node) -> Outcome:
    """Result: as of weights_look."""
    from sparkops.node import files, incoming
    from sparkops.node import weights_record as weights

    path = os.path.abspath(args.path)
    if len(args.names) != len(args.files):
        raise Failure(f"{len(args.names)} names for {len(args.files)} files")
    wanted = dict(zip(map(weights.plain_name, args.names), args.files))
    total = sum(file.size for file in args.files)
    if node.check:
        return Outcome.changed(f"{total / 1e9:.1f} GB would be brought", path=path)
    record = weights.Record.of(node.state_dir, path)
    good = []
    if record is not None and os.path.isdir(path):
        bad = weights.problems(record, node)
        good = [
            n for n, one in record.files.items() if n in wanted and n not in bad and one["sha256"] == wanted[n].digest
        ]
    folder = incoming.prepare(path, good)
    missing = [name for name in wanted if not came(os.path.join(folder, name), wanted[name], name in good)]
    incoming.check_space(folder, sum(wanted[name].size for name in missing))
    for name in missing:
        full = os.path.join(folder, name)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        files.write_pieces(full, wanted[name].read(node), 0o644, digest=wanted[name].digest)
    sums = {name: file.digest for name, file in wanted.items()}
    incoming.settle(path, list(wanted), sums, args.source, node)
    return Outcome.changed(f"{total / 1e9:.1f} GB, {len(missing)} files sent", **weights.look(path, node))


def came(path: str, file: Source, good: bool) -> bool:
    """Whether a run before has brought a file."""
    from sparkops.node import files

    if good:
        return True
    return os.path.isfile(path) and os.path.getsize(path) == file.size and files.sha256(path) == file.digest
