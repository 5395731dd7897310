"""Remove checkpoints that no release serves: those that sparkops put there, others only when asked.

Unfinished transfers go too, unless one is under way.

Example:
    - name: Remove weights that nothing serves
      weights_prune:
        models_dir: ~/models/hf
        home: /opt/sparkops
"""

from __future__ import annotations

import os

from sparkops.node.api import Arguments, Failure, Node, Outcome, Path


class Args(Arguments):
    models_dir: Path  # where checkpoints are
    home: Path  # sparkops_home: what its releases serve stays
    only: str = ""  # one checkpoint's name; "": all
    adopted: bool = False  # also those that were there before sparkops


def apply(args: Args, node: Node) -> Outcome:
    """Result: removed, kept (why, by path), freed (bytes)."""
    from sparkops.node import incoming, weights_there
    from sparkops.node import weights_record as weights
    from sparkops.node.jobs import Job

    removed, kept, freed = [], {}, 0
    for one in weights_there.there(os.path.abspath(args.models_dir), args.home, node):
        path = one["path"]
        if args.only and one["name"] != args.only:
            continue
        if one["used"]:
            kept[path] = f"release {one['used'][-1]} serves it"
        elif Job(node.state_dir, weights.job_key(path)).running():
            kept[path] = "a transfer is under way"
        elif not one["made"] and not args.adopted:
            kept[path] = "it was there before sparkops (--adopted removes it too)"
        else:
            removed.append(path)
            freed += one["bytes"] + one["staged"]
            if not node.check:
                incoming.remove(path)
                incoming.remove(weights.staging(path))
                record = weights.Record.of(node.state_dir, path)
                if record:
                    record.forget(node.state_dir)
                # The log of a download that failed goes with what it had brought.
                incoming.forget_jobs(path, node)
    if args.only and kept:
        raise Failure("; ".join(f"{path} stays: {why}" for path, why in kept.items()), kept=kept)
    facts = {"removed": removed, "kept": kept, "freed": freed}
    said = [*(f"removed {path}" for path in removed), *(f"{path} stays: {why}" for path, why in kept.items())]
    return Outcome("changed" if removed else "ok", "\n".join(said), None, facts)
