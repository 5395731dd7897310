"""Put a declared patch into a package of a venv, or take it out.

The patch (patches/NAME.yml) pins the file's sha256 before and after. Hunks are found by content; the result is written
only when its sha256 is the declared one, by temp file and rename, with the pristine file kept once as FILE.orig. A
file that is neither of the two fails with the reject, and nothing is changed.

Example:
    - name: Load a checkpoint without a vision tower
      pinned_patch:
        name: qwen3_5-language-only-guard
        root: ~/vllm/lib/python3*/site-packages
"""

from __future__ import annotations

from sparkops.node.api import Arguments, Failure, Outcome, Patch, Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from sparkops.node.api import Node


class Args(Arguments):
    name: Patch  # a declared patch: patches/NAME.yml of the project, or a shipped one
    root: Path  # the site-packages of a venv; may be a glob that means one folder
    state: Literal["present", "absent"] = "present"  # absent: the pristine file, from .orig or by undoing the diff


def apply(args: Args, node: Node) -> Outcome:
    """Result: patch, path, engine, sha256 (of the file; check mode: as it would be), orig (.orig's path, or None)."""
    from sparkops.node import patched

    try:
        root = patched.site_packages(args.root)
    except Failure as failure:
        if node.check:
            # The venv may be what an earlier task is going to build.
            return Outcome.unknown(failure.msg)
        raise
    change = (patched.present if args.state == "present" else patched.absent)(args.name, root)
    if change.content is None:
        return Outcome.ok(f"{args.name.name} is {args.state}", **change.facts())
    if not node.check:
        change.carry_out(keep=args.state == "present")
    return Outcome.changed(f"{args.name.name} is {args.state} now", diff=change.diff(), **change.facts())
