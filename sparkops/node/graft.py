"""A checkpoint with another's draft: a folder of links to its files, the draft beside them, index and config rewritten.

It is built in `.NAME.graft` beside the folder to be, and renamed into place. What an interrupted build has copied stays
there, and the next one goes on from it:

    .NAME.graft/state.json   what is being copied (`plan`), its `total` bytes, and how many are on the disk for sure
    .NAME.graft/tree/        the folder to be; mtp.safetensors grows in it
"""

from __future__ import annotations

import json
import os

from sparkops.node import checkpoint, draft, files, hub, safetensors
from sparkops.node.api import Failure
from sparkops.node.checkpoint import CONFIG, INDEX
from sparkops.node.draft_copy import ASKED, DONOR, Copy
from sparkops.node.safetensors import METADATA, BadFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from sparkops.node.donor import Donor

# Left free on the file system; the small files are in it.
SPARE = 64 << 20
# Where a link can't be made, larger files are linked to by name: a copy of 20 GB would take as much again.
COPIED_UP_TO = 64 << 20


class Target:
    """The checkpoint that gets the draft. Raises Failure when it is none, is not whole, or has a draft."""

    def __init__(self, path: str) -> None:
        self.path = os.path.realpath(path)
        try:
            if not os.path.isdir(self.path):
                raise Failure(f"the target {path} is no folder with a checkpoint")
            found = checkpoint.survey(self.path)
            self.names = sorted(listed(self.path))
            self.config = found["config"]
            self.index = read(self.path, INDEX)
        except BadFile as error:
            raise Failure(f"the target {path} is no whole checkpoint:\n{error}") from None
        except OSError as error:
            raise Failure(f"cannot read the target {error.filename or path}: {error.strerror}") from None
        if self.config is None:
            raise Failure(f"the target {path} has no {CONFIG}: the draft can't be checked against it")
        self._check(found)

    def _check(self, found: dict[str, Any]) -> None:
        held = [group[0] for file in found["files"] for group in file["groups"] if draft.is_draft(group[0])]
        if held or draft.FILE in self.names:
            raise Failure(
                f"the target {self.path} has a draft already ({held[0] if held else draft.FILE}); name another"
            )
        if found["index"] and found["index"]["absent"]["count"]:
            absent = ", ".join(found["index"]["absent"]["first"])
            raise Failure(f"the target {self.path} is not whole: its index names {absent}, which no file holds")


def listed(folder: str, under: str = "") -> Iterator[str]:
    """The files of a folder and its folders, relative to it. Hidden ones (a download's notes, a tool's) stay behind."""
    with os.scandir(os.path.join(folder, under)) as entries:
        for entry in entries:
            path = os.path.join(under, entry.name)
            if entry.name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from listed(folder, path)
            else:
                yield path


def read(folder: str, name: str) -> dict[str, Any] | None:
    """A checkpoint's JSON file, None where there is none. Raises BadFile, OSError."""
    path = os.path.join(folder, name)
    return checkpoint.read_json(path, safetensors.LARGEST_HEADER) if os.path.exists(path) else None


def rest(out: str) -> str:
    """Where an unfinished build of `out` is."""
    return os.path.join(os.path.dirname(out), f".{os.path.basename(out)}.graft")


class Made:
    """A grafted file: {name: (dtype, shape)}, bytes, and the donor that it remembers (None: it was made by hand).

    Raises BadFile, OSError.
    """

    def __init__(self, path: str) -> None:
        header, _, _ = checkpoint.whole(path)
        about = header.get(METADATA, {})
        self.donor: str | None = about.get(DONOR)
        self.asked: str | None = about.get(ASKED)
        self.total = safetensors.data_size(header)
        self.tensors = {
            name: (str(one["dtype"]), tuple(one["shape"])) for name, one in header.items() if name != METADATA
        }

    def is_from(self, asked: str) -> bool:
        """Whether the donor is the one that is asked for. A hub's without a revision is any; no hub is asked."""
        if self.donor is None:
            return True
        if asked.startswith(hub.PREFIX):
            return asked in (self.donor, self.asked, self.donor.partition("@")[0])
        return os.path.realpath(asked) == self.donor


def differences(target: Target, asked: str, out: str) -> list[str]:
    """What keeps `out` from being `target` with the draft of `asked`; []: it is just that."""
    try:
        made = Made(os.path.join(out, draft.FILE))
        config, index = read(out, CONFIG), read(out, INDEX)
    except FileNotFoundError:
        return [f"there is no {draft.FILE}"]
    except BadFile as error:
        return [f"{draft.FILE}, or a JSON file: {error}"]
    except OSError as error:
        return [f"cannot read {error.filename}: {error.strerror}"]
    found = draft.misfits(target.config, made.tensors)
    if not made.is_from(asked):
        found.append(f"its draft is that of {made.donor}")
    if config is None or draft.grafted_config(config, draft.layers(made.tensors)) != config:
        found.append(f"{CONFIG} does not declare the draft, or does not leave it out of the quantization")
    if index != (None if target.index is None else draft.grafted_index(target.index, made.tensors, made.total)):
        found.append(f"{INDEX} is not the target's with the draft")
    return found + [f"{name} is not the target's" for name in target.names if not same(target, name, out)]


def same(target: Target, name: str, out: str) -> bool:
    """Whether a file of `out` is the target's: the same one, or a copy of its size. What is rewritten may differ."""
    try:
        there, here = (os.stat(os.path.join(folder, name)) for folder in (target.path, out))
    except OSError:
        return False
    return name in (CONFIG, INDEX) or os.path.samestat(there, here) or there.st_size == here.st_size


def check(target: Target, donor: Donor, out: str) -> None:
    """Raises Failure unless the draft fits the target and the disk."""
    found = draft.misfits(target.config, donor.shapes())
    if found:
        some = [*found[:8], *([f"... and {len(found) - 8} more"] if found[8:] else [])]
        raise Failure("\n- ".join([f"the draft of {donor.name} does not fit {target.path}:", *some]))
    draft.grafted_config(target.config, draft.layers(donor.shapes()))
    parent = os.path.dirname(out)
    try:
        there = os.statvfs(parent)
    except OSError as error:
        raise Failure(f"cannot make {out}: {parent}: {error.strerror}") from None
    need = donor.total - Copy(donor, rest(out)).done + SPARE
    free = there.f_bavail * there.f_frsize
    if free < need:
        raise Failure(f"no room for the draft: it takes {need:,} bytes, and {parent} has {free:,} free")


def build(target: Target, donor: Donor, out: str) -> int:
    """Make `out`; returns the bytes that were copied now. Raises Failure, Trouble, OSError; what was copied stays."""
    stage = rest(out)
    tree = os.path.join(stage, "tree")
    os.makedirs(tree, exist_ok=True)
    copied = Copy(donor, stage).run()
    made = Made(os.path.join(tree, draft.FILE))
    if made.tensors != donor.shapes() or made.total != donor.total:
        raise Failure(f"{tree}/{draft.FILE} is not what was copied; run again")
    clear(tree)
    for name in target.names:
        if name not in (CONFIG, INDEX):
            place(os.path.join(target.path, name), os.path.join(tree, name))
    write_json(os.path.join(tree, CONFIG), draft.grafted_config(target.config, draft.layers(made.tensors)))
    if target.index is not None:
        write_json(os.path.join(tree, INDEX), draft.grafted_index(target.index, made.tensors, made.total))
    files.sync_folder(tree)
    os.rename(tree, out)
    files.sync_folder(os.path.dirname(out))
    tidy(out)
    return copied


def clear(tree: str) -> None:
    """Take away what an interrupted build has placed, but for the draft."""
    import shutil

    for name in os.listdir(tree):
        path = os.path.join(tree, name)
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        elif name != draft.FILE:
            os.unlink(path)


def place(source: str, path: str) -> None:
    """The same file at `path`: a hard link, or where that can't be a copy of a small one and a link by name."""
    import errno
    import shutil

    os.makedirs(os.path.dirname(path), exist_ok=True)
    # A hub's cache has links to its blobs; the graft has the blob itself.
    source = os.path.realpath(source)
    if os.path.isdir(source):
        os.symlink(source, path)
        return
    try:
        os.link(source, path)
    except OSError as error:
        # Another file system, one without hard links, or somebody else's file (fs.protected_hardlinks).
        if error.errno not in (errno.EXDEV, errno.EPERM, errno.EACCES, errno.EMLINK, errno.EOPNOTSUPP, errno.ENOSYS):
            raise
        if os.path.getsize(source) > COPIED_UP_TO:
            os.symlink(source, path)
        else:
            shutil.copyfile(source, path)


def write_json(path: str, document: dict[str, Any]) -> None:
    """As published checkpoints have it: two spaces deep, a newline at the end."""
    files.write(path, (json.dumps(document, indent=2) + "\n").encode())


def tidy(out: str) -> None:
    """Remove what a finished build leaves beside it."""
    import shutil

    shutil.rmtree(rest(out), ignore_errors=True)
