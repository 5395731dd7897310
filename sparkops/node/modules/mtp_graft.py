"""Give a checkpoint the draft (the mtp.* tensors) of another, in a new folder; neither of the two is changed.

The target's files are hard links there, index and config are rewritten, and of a donor on a hub only the draft's own
bytes are fetched (1.7 GB of 70). It goes on when the controller is gone, and an interrupted copy is taken up again.

Example:
    - name: Graft the draft in
      mtp_graft:
        path: ~/models/hf/Qwen-AgentWorld-35B-A3B-NVFP4-MTP
        target: ~/models/hf/Qwen-AgentWorld-35B-A3B-NVFP4
        donor: hf:Qwen/Qwen3.6-35B-A3B
        token: "{{ lookup('env', 'HF_TOKEN') }}"
"""

from __future__ import annotations

import os

from sparkops.node.api import Arguments, Failure, Node, Outcome, Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Args(Arguments):
    """path: the folder to make. target: the checkpoint's folder. donor: a folder or *.safetensors file on the node,
    or hf:ORG/NAME[@REVISION]. endpoint: the hub's address. token: for gated models, sent to the hub alone.
    """

    path: Path
    target: Path
    donor: Path
    endpoint: str = "https://huggingface.co"
    token: str = ""


def apply(args: Args, node: Node) -> Outcome:
    """Result: path, donor, tensors and bytes of the draft, fetched (bytes copied or fetched now), files (the target's),
    symlinks (how many of these are no hard links).
    """
    from sparkops.node import graft
    from sparkops.node.donor import find

    out = os.path.abspath(args.path)
    coming = [path for path in (args.target, args.donor) if not path.startswith("hf:") and not os.path.exists(path)]
    if node.check and coming:
        return Outcome.unknown(f"{coming[0]} is not there yet", path=out)
    target = graft.Target(args.target)
    refuse_overlap(target.path, out)
    if taken(out):
        refuse_other(args, target, out)
        if not node.check:
            tidy(node, out)
        return Outcome.ok("it is there", **told(target, out), fetched=0)
    if node.check:
        with Environment(node.env):
            donor = find(args.donor, args.endpoint, args.token or None)
        graft.check(target, donor, out)
        return Outcome.changed(
            f"{len(donor.tensors)} tensors of {donor.name}",
            path=out,
            donor=donor.name,
            tensors=len(donor.tensors),
            bytes=donor.total,
            files=len(target.names),
        )
    fetched = node.job(key(out), lambda there: work(args, there, target, out), lambda here: watch(here, out))
    # A job that was joined may have been given another donor.
    refuse_other(args, target, out)
    made = told(target, out)
    said = f"{made['tensors']} tensors of {made['donor']}"
    if made["symlinks"]:
        said += f"; {made['symlinks']} files are symbolic links (hard links can't be made there): keep {target.path}"
    return Outcome.changed(said, **made, **fetched)


def work(args: Args, node: Node, target: Any, out: str) -> dict[str, Any]:
    """The detached part. Raises Failure."""
    from sparkops.node import graft
    from sparkops.node import weights_record as weights
    from sparkops.node.donor import find
    from sparkops.node.patience import Trouble

    with Environment(node.env):
        donor = find(args.donor, args.endpoint, args.token or None)
        graft.check(target, donor, out)
        try:
            fetched = graft.build(target, donor, out)
            # Its hashes, for copies to other nodes and for weights verify: the target's where they are known.
            if before := weights.Record.of(node.state_dir, out):
                before.forget(node.state_dir)
            weights.adopt(out, node, made=True, source=f"draft of {donor.name}", like=target.path)
            return {"fetched": fetched}
        except Trouble as error:
            raise Failure(f"{error}; what has come is kept") from None
        except OSError as error:
            raise Failure(f"cannot make {out}: {error.filename or ''} {error.strerror or error}") from None


def watch(node: Node, out: str) -> None:
    """Tell how many bytes of the draft are there."""
    from sparkops.node import draft, draft_copy, graft

    stage = graft.rest(out)
    total = draft_copy.noted_state(os.path.join(stage, "state.json")).get("total")
    try:
        done = os.path.getsize(os.path.join(stage, "tree", draft.FILE))
    except OSError:
        return
    if total is not None:
        node.progress(done, total, "bytes", draft.FILE)


def taken(out: str) -> bool:
    """Whether something is at `out`; an empty folder is nothing."""
    try:
        return bool(os.listdir(out))
    except FileNotFoundError:
        return os.path.islink(out)
    except OSError as error:
        raise Failure(f"{out} is there and can't be listed: {error.strerror}", path=out) from None


def refuse_other(args: Args, target: Any, out: str) -> None:
    """Raises Failure unless `out` is the graft that is asked for."""
    from sparkops.node import graft

    found = graft.differences(target, args.donor, out)
    if found:
        first = f"{out} is there, and is not {target.path} with the draft of {args.donor}:"
        raise Failure("\n- ".join([first, *found[:8]]) + "\nname another folder, or remove it", path=out)


def refuse_overlap(target: str, out: str) -> None:
    """Raises Failure when the new folder would be the target, or one in it."""
    real = os.path.realpath(out)
    if real == target or real.startswith(target + os.sep):
        raise Failure(f"{out} is in the target {target}: a graft makes a new folder beside it", path=out)


def told(target: Any, out: str) -> dict[str, Any]:
    """A finished graft's result."""
    from sparkops.node import draft, graft

    made = graft.Made(os.path.join(out, draft.FILE))
    by_name = [name for name in target.names if os.path.islink(os.path.join(out, name))]
    said = {"donor": made.donor, "tensors": len(made.tensors), "bytes": made.total}
    return {"path": out, "files": len(target.names), "symlinks": len(by_name), **said}


def key(out: str) -> str:
    """A job's name for a folder."""
    from hashlib import sha256

    return f"graft-{sha256(os.path.realpath(out).encode()).hexdigest()[:16]}"


def tidy(node: Node, out: str) -> None:
    """Remove what a build left that ended when nobody was there to see it."""
    from sparkops.node import graft
    from sparkops.node.jobs import Job

    job = Job(node.state_dir, key(out))
    if not job.running():
        job.clear()
        graft.tidy(out)


class Environment:
    """The task's environment while it lasts: urllib takes proxies from the process's."""

    def __init__(self, env: dict[str, str]) -> None:
        self.env = env

    def __enter__(self) -> None:
        self.before = dict(os.environ)
        os.environ.update(self.env)

    def __exit__(self, *_: object) -> None:
        os.environ.clear()
        os.environ.update(self.before)
