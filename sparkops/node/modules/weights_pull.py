"""Fetch a model from a hub with Hugging Face's own client: once, to this node; others copy it from here.

The revision is pinned to a commit at the start. The download goes on by itself when the controller leaves, and the next
run joins it. Each file's hash is compared with what the hub says of it, and only then it gets its final name.
What is there already is kept; of a checkpoint with a bad file, that file is fetched.

Example:
    - name: Fetch the weights
      weights_pull:
        path: ~/models/hf/Qwen3.6-35B-A3B-FP8
        repo: Qwen/Qwen3.6-35B-A3B-FP8
        client: /opt/sparkops/tools/hf-2.4.0-0123456789ab
        token: "{{ lookup('env', 'HF_TOKEN') }}"
"""

from __future__ import annotations

import json
import os

from sparkops.node.api import Arguments, Failure, Node, Outcome, Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# What was asked for and the commit that it was then; within the staging folder.
PIN = ".pull.json"


class Args(Arguments):
    path: Path  # the checkpoint's folder
    repo: str  # ORG/NAME
    client: Path  # a venv with huggingface_hub in it
    revision: str = "main"  # a branch, a tag or a commit
    endpoint: str = "https://huggingface.co"  # the hub
    token: str = ""  # for gated and private models; it is in no argv and no log
    stall: float = 60  # seconds without a byte, after which the download is begun anew where it was


def apply(args: Args, node: Node) -> Outcome:
    """Result: as of weights_look, and commit."""
    from sparkops.node import incoming
    from sparkops.node import weights_record as weights

    path = os.path.abspath(args.path)
    refuse(args)
    looked = weights.look(path, node, args.repo, args.revision)
    if looked["present"]:
        return Outcome.ok("here", **looked)
    if node.check:
        return Outcome.changed(f"{args.repo} would be fetched", path=path)
    pace = incoming.Pace(weights.staging(path))

    def work(job: Node) -> dict[str, Any]:
        return pull(args, path, job)

    def watch(seen: Node) -> None:
        try:
            with open(os.path.join(weights.staging(path), PIN), encoding="utf-8") as file:
                pinned = json.load(file)
        except (OSError, ValueError):
            return
        pace.tell(seen, sum(one["size"] for one in pinned["files"].values()))

    while not incoming.fetched(path, node, work, watch):
        if weights.Record.of(node.state_dir, path) and weights.look(path, node, args.repo, args.revision)["present"]:
            break
    looked = weights.look(path, node, args.repo, args.revision)
    if not looked["present"]:
        raise Failure(f"the download of {args.repo} has ended, and {weights.said(looked)}; run again", **looked)
    return Outcome.changed(f"{args.repo}, {looked['bytes'] / 1e9:.1f} GB", **looked)


def refuse(args: Args) -> None:
    """Raises Failure for what no hub can be asked with."""
    from sparkops.node.patience import Trouble
    from sparkops.node.ranges import Web

    if args.stall <= 0:
        raise Failure(f"stall is {args.stall:g}; it is a number of seconds above 0 (hub_stall)")
    try:
        Web(args.endpoint)
    except Trouble as error:
        raise Failure(f"{error.where}: {error.message} (hub_url)") from None


def pull(args: Args, path: str, node: Node) -> dict[str, Any]:
    """The detached part. Raises Failure."""
    from sparkops.node import files, incoming
    from sparkops.node import weights_record as weights
    from sparkops.node.hubclient import Hub

    hub = Hub(args.client, args.endpoint, args.token, args.repo, args.stall)
    record = weights.Record.of(node.state_dir, path)
    bad = weights.problems(record, node) if record and os.path.isdir(path) else {}
    good = [name for name in record.files if name not in bad] if record and os.path.isdir(path) else []
    folder = incoming.prepare(path, good)
    pinned = pin(args, hub, record, folder, node)
    wanted: dict[str, dict[str, Any]] = pinned["files"]
    kept = keep_adopted(path, folder, wanted) if record is None else good
    trusted = {name: record.files[name]["sha256"] for name in good if name in wanted} if record else {}
    sums = {
        name: found for name, found in trusted.items() if is_as_listed(os.path.join(folder, name), wanted[name], found)
    }
    missing = [name for name in wanted if name not in sums]
    for name in set(missing) & set(good):
        # Of another commit.
        files.discard(os.path.join(folder, name))
    incoming.check_space(folder, sum(wanted[name]["size"] for name in missing) - staged(folder, missing, kept))
    for tries in (1, 2):
        absent = [name for name in missing if not os.path.isfile(os.path.join(folder, name))]
        if absent:
            hub.download(pinned["commit"], absent, folder)
        found = weights.digests(folder, missing)
        wrong = [name for name in missing if not is_as_listed(os.path.join(folder, name), wanted[name], found[name])]
        if not wrong:
            break
        for name in wrong:
            incoming.note(f"{name} came with other bytes than the hub lists")
            files.discard(os.path.join(folder, name))
        incoming.tidy(folder, {*wanted, PIN} - set(wrong))
        if tries == 2:
            raise Failure(
                f"{wrong[0]} of {args.repo} came twice with other bytes than {hub.endpoint} lists for commit "
                f"{pinned['commit']}: it was changed there, or something on the way changes it",
                files=wrong,
            )
    source = f"hf:{args.repo}@{pinned['commit']}"
    incoming.settle(path, list(wanted), {**sums, **found}, source, node, args.revision)
    return {"commit": pinned["commit"]}


def pin(args: Args, hub: Any, record: Any, folder: str, node: Node) -> dict[str, Any]:
    """What is to come: of an unfinished download's commit, the checkpoint's, or another that is asked for."""
    from sparkops.node import files
    from sparkops.node import weights_record as weights

    asked = {"repo": args.repo, "revision": args.revision, "endpoint": hub.endpoint}
    try:
        with open(os.path.join(folder, PIN), encoding="utf-8") as file:
            pinned: dict[str, Any] = json.load(file)
        if pinned["asked"] == asked:
            return pinned
    except (OSError, ValueError, KeyError):
        pass
    revision = args.revision
    name, _, commit = record.source.rpartition("@") if record else ("", "", "")
    if name == f"hf:{args.repo}":
        revision = args.revision if weights.another(record, args.repo, args.revision)[0] else commit
    elif name:
        raise Failure(f"{record.path} is {record.source}, not {args.repo}; prune it first, or set models_dir")
    listing = hub.listing(revision, os.path.join(folder, weights.SCRATCH), node)
    for name, one in listing["files"].items():
        weights.plain_name(name)
        if not isinstance(one["size"], int) or one["size"] < 0:
            raise Failure(f"{hub.endpoint} lists {name} of {args.repo} with {one['size']!r} bytes")
    if not listing["files"]:
        raise Failure(f"{args.repo} has no files at {revision}")
    pinned = {"asked": asked, **listing}
    files.write(os.path.join(folder, PIN), json.dumps(pinned).encode(), 0o644)
    return pinned


def keep_adopted(path: str, folder: str, wanted: dict[str, dict[str, Any]]) -> list[str]:
    """Link what somebody has brought here before into the staging folder, where size says that it may be whole."""
    from sparkops.node import files, incoming

    kept = []
    for name, one in wanted.items():
        there = os.path.join(path, name)
        found = files.regular(there)
        if found and found.st_size == one["size"] and not os.path.exists(os.path.join(folder, name)):
            kept.append(name)
    incoming.prepare(path, kept)
    return kept


def staged(folder: str, missing: list[str], kept: list[str]) -> int:
    """The bytes of an unfinished download, and of what need not come."""
    from sparkops.node.weights_record import size_of

    whole = sum(
        os.path.getsize(os.path.join(folder, one))
        for one in {*missing, *kept}
        if os.path.isfile(os.path.join(folder, one))
    )
    return whole + size_of(os.path.join(folder, ".cache"))


def is_as_listed(path: str, listed: dict[str, Any], sha256: str) -> bool:
    """Whether a file is what the hub says of it."""
    from sparkops.node.hubclient import blob_id

    if os.path.getsize(path) != listed["size"]:
        return False
    if listed["sha256"]:
        return bool(listed["sha256"] == sha256)
    return not listed["blob"] or blob_id(path) == listed["blob"]
