"""Copy a checkpoint from a node that offers it (weights_offer), with rsync.

A copy that was stopped goes on where it was. Each file's hash is checked on arrival, and only then it gets its final
name. What is there already is kept; of a checkpoint with a bad file, that file is copied.

Example:
    - name: Copy the weights
      weights_take:
        path: ~/models/hf/Qwen3.6-35B-A3B-FP8
        address: "{{ offer.address }}"
        port: "{{ offer.port }}"
        files: "{{ offer.files }}"
        source: "{{ offer.source }}"
        secret: "{{ transfer_secret }}"
"""

from __future__ import annotations

import os

from sparkops.node.api import Arguments, Failure, Node, Outcome, Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Args(Arguments):
    path: Path  # the checkpoint's folder
    address: str  # of the node that offers it
    port: int  # its port there
    files: dict[str, Any]  # by name: size, sha256
    secret: str  # the run's
    own_address: str = ""  # from which to connect; "": as the routes say
    source: str = ""  # where the checkpoint came from in the first place
    revision: str = ""  # in whose words it was asked for there
    like: Path | None = None  # a checkpoint here that may have some of the files: they become hard links of its own


def apply(args: Args, node: Node) -> Outcome:
    """Result: as of weights_look."""
    from sparkops.node import incoming
    from sparkops.node import weights_record as weights

    path = os.path.abspath(args.path)
    total = sum(one["size"] for one in args.files.values())
    looked = weights.look(path, node)
    record = weights.Record.of(node.state_dir, path)
    if looked["present"] and (record is None or record.wanted() == args.files):
        return Outcome.ok("here", **looked)
    if node.check:
        return Outcome.changed(f"it would be copied from {args.address}", path=path)
    for name in args.files:
        weights.plain_name(name)
    pace = incoming.Pace(weights.staging(path))
    while not incoming.fetched(path, node, lambda job: take(args, path, job), lambda seen: pace.tell(seen, total)):
        record = weights.Record.of(node.state_dir, path)
        if record and record.wanted() == args.files and not weights.problems(record, node):
            break
    looked = weights.look(path, node)
    if not looked["present"]:
        raise Failure(f"the copy has ended, and {weights.said(looked)}; run again", **looked)
    return Outcome.changed(f"{total / 1e9:.1f} GB from {args.address}", **looked)


def take(args: Args, path: str, node: Node) -> dict[str, Any]:
    """The detached part, so that a copy's progress can be watched; it ends with the offer. Raises Failure."""
    from sparkops.node import files, incoming
    from sparkops.node import weights_record as weights
    from sparkops.node.arrival import Arrival

    record = weights.Record.of(node.state_dir, path)
    there = record is not None and os.path.isdir(path)
    bad = weights.problems(record, node) if record and there else {}
    good = {
        name
        for name, one in (record.files.items() if record and there else ())
        if name not in bad and args.files.get(name, {}).get("sha256") == one["sha256"]
    }
    folder = incoming.prepare(path, good)
    missing = [name for name in args.files if name not in good]
    for name in missing:
        drop_what_is_no_beginning(os.path.join(folder, name), args.files[name]["size"])
    if args.like:
        sums = {name: args.files[name]["sha256"] for name in missing}
        linked = link(os.path.abspath(args.like), sums, folder, node)
        missing = [name for name in missing if name not in linked]
    come = sum(os.path.getsize(full) for name in missing if os.path.isfile(full := os.path.join(folder, name)))
    incoming.check_space(folder, sum(args.files[name]["size"] for name in missing) - come)
    for tries in (1, 2):
        with Arrival(folder, {name: args.files[name]["size"] for name in missing}) as arrival:
            copy(args, missing, folder, node)
            sums = arrival.sums()
        wrong = [name for name in missing if sums.get(name) != args.files[name]["sha256"]]
        if not wrong:
            break
        for name in wrong:
            incoming.note(f"{name} came with other bytes than it must have")
            files.discard(os.path.join(folder, name))
        if tries == 2:
            raise Failure(
                f"{wrong[0]} came twice from {args.address} with other bytes than recorded there: run "
                "sparkops weights verify on that node",
                files=wrong,
            )
    known = {name: args.files[name]["sha256"] for name in args.files}
    incoming.settle(path, list(args.files), known, args.source, node, args.revision)
    return {}


def drop_what_is_no_beginning(path: str, size: int) -> None:
    """What is longer than the file, or a link to one that is somebody's, is not to be appended to."""
    from sparkops.node import files

    found = files.regular(path)
    if found and (found.st_size > size or found.st_nlink > 1):
        files.discard(path)


def link(like: str, sums: dict[str, str], folder: str, node: Node) -> set[str]:
    """The names of those files that another checkpoint has here, by their hashes; they are in `folder` now."""
    from sparkops.node import files
    from sparkops.node import weights_record as weights

    if weights.looks_whole(like):
        return set()
    record = weights.adopt(like, node)
    bad = weights.problems(record, node)
    held = {one["sha256"]: os.path.join(like, name) for name, one in record.files.items() if name not in bad}
    made = set()
    for name, digest in sums.items():
        if digest in held:
            full = os.path.join(folder, name)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            files.discard(full)
            try:
                os.link(os.path.realpath(held[digest]), full)
            except OSError:
                # Another file system, or somebody else's file: it is copied as the others are.
                continue
            made.add(name)
    return made


def copy(args: Args, names: list[str], folder: str, node: Node) -> None:
    """rsync; what has come of a file before is its beginning, which the hash will judge. Raises Failure."""
    argv = command(args.address, args.port, args.own_address, folder)
    lines = "".join(f"{name}\n" for name in names)
    done = node.run(argv, stdin=lines, env={"RSYNC_PASSWORD": args.secret})
    if done.rc:
        said = (done.err.strip().splitlines() or [f"status {done.rc}"])[0]
        raise Failure(f"copying from {args.address} ended: {said}; run again to go on", rc=done.rc)


def command(address: str, port: int, own_address: str, folder: str) -> list[str]:
    """rsync's argv: the names come on stdin, the secret in the environment."""
    from sparkops.node.offers import MODULE, USER

    host = f"[{address}]" if ":" in address else address
    return [
        *("rsync", "--times", "--copy-links", "--append", "--timeout=60", "--contimeout=20", "--files-from=-"),
        *([f"--address={own_address}"] if own_address else []),
        f"rsync://{USER}@{host}:{port}/{MODULE}/",
        f"{folder}/",
    ]
