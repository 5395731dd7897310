"""A declared patch and the file it changes: what state the file is in, and how it gets into the other.

Nothing is written before the result's sha256 is the declared one. The new file comes by rename, since uv's files are
hard links into its cache: a write in place would change the cached copy and every other venv.
"""

from __future__ import annotations

import os

from sparkops.node import files, patching
from sparkops.node.api import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sparkops.node.api import Patch


class Change:
    """A patch on one file: `content` is what the file shall hold (None: it does already), `orig` its backup."""

    def __init__(self, patch: Patch, path: str, version: dict[str, str], found: bytes, content: bytes | None) -> None:
        self.patch = patch
        self.path = path
        self.version = version
        self.found = found
        self.content = content
        self.orig = path + ".orig"

    def diff(self) -> str:
        """The change as a unified diff, "" when there is none."""
        return "" if self.content is None else files.diff(self.found, self.content, self.path)

    def carry_out(self, keep: bool) -> None:
        """Write it: with `keep` the found bytes go to `.orig` first, once. Compiled caches are dropped."""
        if self.content is None:
            return
        mode = os.stat(self.path).st_mode & 0o7777
        if keep and not os.path.lexists(self.orig):
            files.write(self.orig, self.found, mode)
        # Before the rename: a kill in between must not leave the old code's cache beside the new source.
        drop_compiled(self.path)
        files.write(self.path, self.content, mode)

    def facts(self) -> dict[str, str | None]:
        """The result keys of a task."""
        return {
            "patch": self.patch.name,
            "path": self.path,
            "engine": self.version["engine"],
            "sha256": digest(self.found if self.content is None else self.content),
            "orig": self.orig if os.path.lexists(self.orig) else None,
        }


def present(patch: Patch, root: str) -> Change:
    """What puts the patch into `root`'s file; raises Failure with the reject when it is none of the versions."""
    path, found = _target(patch, root)
    seen = digest(found)
    for version in patch.versions:
        if seen == version["after"]:
            return Change(patch, path, version, found, None)
        if seen == version["before"]:
            _usable_backup(path, version, patch)
            return Change(patch, path, version, found, _turned(patch, found, version["after"], False))
    raise _neither(patch, path, found)


def absent(patch: Patch, root: str) -> Change:
    """What brings the pristine file back, from `.orig` or by undoing the diff; raises Failure as `present` does."""
    path, found = _target(patch, root)
    seen = digest(found)
    for version in patch.versions:
        if seen == version["before"]:
            return Change(patch, path, version, found, None)
        if seen == version["after"]:
            orig = path + ".orig"
            if os.path.isfile(orig):
                kept = files.read(orig)
                if digest(kept) == version["before"]:
                    return Change(patch, path, version, found, kept)
            return Change(patch, path, version, found, _turned(patch, found, version["before"], True))
    raise _neither(patch, path, found)


def site_packages(root: str) -> str:
    """The one folder that `root` (a path, or a glob such as VENV/lib/python3*/site-packages) means, or Failure."""
    import glob

    if os.path.isdir(root):
        return root
    found = sorted(filter(os.path.isdir, glob.glob(root)))
    if len(found) == 1:
        return found[0]
    if found:
        raise Failure(f"{root} means {len(found)} folders; name one of {', '.join(found)}")
    raise Failure(f"there is no folder {root}; root is a venv's site-packages (VENV/lib/python3.12/site-packages)")


def drop_compiled(path: str) -> None:
    """Remove a source file's compiled caches (`__pycache__/NAME.*.pyc`). Raises Failure."""
    folder = os.path.join(os.path.dirname(path), "__pycache__")
    stem = os.path.basename(path).rpartition(".")[0] + "."
    try:
        for name in os.listdir(folder):
            # The middle is a tag such as cpython-312.opt-1: never another module's name.
            if name.startswith(stem) and name.endswith(".pyc"):
                os.unlink(os.path.join(folder, name))
    except FileNotFoundError:
        return
    except OSError as error:
        raise files.refusal("remove compiled caches in", folder, error) from error


def digest(data: bytes) -> str:
    """The sha256 of bytes, in hex."""
    from hashlib import sha256

    return sha256(data).hexdigest()


def _target(patch: Patch, root: str) -> tuple[str, bytes]:
    path = os.path.join(site_packages(root), patch.file)
    if not os.path.isfile(path):
        raise Failure(f"there is no {path}, which the patch {patch.name} changes; is its package installed there?")
    return path, files.read(path)


def _usable_backup(path: str, version: dict[str, str], patch: Patch) -> None:
    orig = path + ".orig"
    if os.path.lexists(orig) and files.sha256(orig) != version["before"]:
        raise Failure(
            f"{orig} is there and is not the pristine file (sha256 {version['before']}), so it is not a backup that "
            f"the patch {patch.name} may rely on or replace; nothing was changed. Move it away, then run again",
            path=orig,
        )


def _turned(patch: Patch, found: bytes, wanted: str, undo: bool) -> bytes:
    """The bytes after the diff (or its reverse), whose sha256 is `wanted`. Raises Failure."""
    try:
        hunks = patching.parse(patch.diff)
    except patching.BadDiff as error:
        raise Failure(f"the diff of the patch {patch.name} is broken: {error}") from None
    text, rejected = patching.apply(_text(found), patching.reverse(hunks) if undo else hunks)
    result = text.encode("utf-8", "surrogateescape")
    if rejected or digest(result) != wanted:
        raise Failure(
            f"the diff of the patch {patch.name} does not lead to the declared file: "
            f"{len(rejected)} of {len(hunks)} hunks rejected, sha256 {digest(result)} instead of {wanted}; "
            "nothing was changed. Correct patches/" + patch.name + ".yml",
        )
    return result


def _neither(patch: Patch, path: str, found: bytes) -> Failure:
    """The file is neither before nor after: say what of the diff fits, and how it differs from its backup."""
    try:
        reject = patching.explain(_text(found), patching.parse(patch.diff), path)
    except patching.BadDiff as error:
        reject = f"the diff of the patch {patch.name} is broken: {error}\n"
    orig = path + ".orig"
    if os.path.isfile(orig):
        kept = files.read(orig)
        for version in patch.versions:
            if digest(kept) == version["before"]:
                expected = _turned(patch, kept, version["after"], False)
                reject += "what would be expected, and what is there:\n" + files.diff(expected, found, path)
    versions = "; ".join(f"{v['engine']}: {v['before']} before, {v['after']} after" for v in patch.versions)
    return Failure(
        f"{path} is neither of the files that the patch {patch.name} knows (sha256 {digest(found)}; {versions}), so "
        f"nothing was changed. Someone edited it, or it is of another version: reinstall its package, then run again.\n"
        + reject,
        path=path,
        sha256=digest(found),
        reject=reject,
    )


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
