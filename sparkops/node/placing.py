"""Put wanted content at a path, as copy, template and systemd_unit do: compare, back up, write, report."""

from __future__ import annotations

import os

from sparkops.node import files
from sparkops.node.api import Failure, Outcome
from sparkops.node.modes import mode_bits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from sparkops.node.api import Node, Source


class Content:
    """Bytes that a file should have: `digest` (sha256), `size`, and the bytes here or at the controller."""

    def __init__(self, digest: str, size: int, inline: bytes | None, source: Source | None) -> None:
        self.digest = digest
        self.size = size
        self.inline = inline
        self.source = source

    @classmethod
    def of(cls, data: bytes) -> Content:
        """Content that is here."""
        from sparkops.node import digest

        seen = digest.new("sha256", len(data))
        seen.update(data)
        return cls(seen.hexdigest(), len(data), data, None)

    def pieces(self, node: Node) -> Iterable[bytes]:
        """The bytes; those of a large file come from the controller now."""
        return self.source.read(node) if self.source else [self.inline or b""]


class Attributes:
    """The mode, owner and group that a file should have; None: leave them."""

    def __init__(self, mode: str | None, owner: str | None, group: str | None) -> None:
        self.mode = mode
        self.owner = owner
        self.group = group


def place(path: str, wanted: Content, attributes: Attributes, node: Node, *, backup: bool, force: bool) -> Outcome:
    """Make `path` a file of this content; result: dest, state, mode, owner, group, uid, gid, size, sha256, backup_file.

    force: False leaves a file that exists as it is. Raises Failure; in check mode a missing folder is no failure,
    since an earlier task may make it.
    """
    folder = os.path.dirname(os.path.abspath(path))
    there = os.path.exists(path)
    if os.path.isdir(path):
        raise Failure(f"{path} is a directory; name the file in it", dest=path)
    if there and not force:
        return Outcome.ok("file already exists", dest=path, **files.path_info(path))
    if not os.path.isdir(folder) and not node.check:
        raise Failure(f"destination directory {folder} does not exist; make it with the file module first", dest=path)
    if there and same(path, wanted):
        changes = files.set_attributes(path, attributes.mode, attributes.owner, attributes.group, node.check)
        result = {"dest": path, **files.path_info(path), "sha256": wanted.digest}
        if not changes:
            return Outcome.ok(**result)
        return Outcome.changed("; ".join(changes), files.changes_diff(path, changes), **result)
    return replace(path, there, wanted, attributes, node, backup)


def replace(path: str, there: bool, wanted: Content, attributes: Attributes, node: Node, backup: bool) -> Outcome:
    """Write content that differs (check mode: say how it differs)."""
    found = files.regular(path)
    shown = content_diff(path, there, wanted)
    mode = files.new_mode() if found is None else found.st_mode & 0o7777
    if attributes.mode is not None:
        mode = mode_bits(attributes.mode, mode, False, files.umask())
    result = {"dest": path, "sha256": wanted.digest, "size": wanted.size, "mode": f"{mode:04o}", "state": "file"}
    message = "content differs" if there else "file is not there"
    if node.check:
        return Outcome.changed(message, shown, **result)
    if backup and there:
        result["backup_file"] = save(path)
    # What comes from the controller now is compared on its way (Node.content).
    digest = None if wanted.source and wanted.inline is None else wanted.digest
    files.write_pieces(path, wanted.pieces(node), mode, attributes.owner, attributes.group, digest)
    return Outcome.changed(message, shown, **{**result, **files.path_info(path)})


def same(path: str, wanted: Content) -> bool:
    """Whether a file has the wanted bytes; sizes are compared first."""
    try:
        size = os.stat(path).st_size
    except OSError as error:
        raise files.refusal("look at", path, error) from error
    return size == wanted.size and files.sha256(path) == wanted.digest


def content_diff(path: str, there: bool, wanted: Content) -> str:
    """The diff of the content; large content is not fetched to be shown."""
    before = os.path.getsize(path) if there else 0
    if wanted.inline is None or max(before, wanted.size) > files.DIFF_LIMIT:
        return f"Files differ, too large to show: {path} ({before} -> {wanted.size} bytes)\n"
    return files.diff(files.read(path) if there else b"", wanted.inline, path)


def save(path: str) -> str:
    """Copy a file beside itself under Ansible's name for backups, with its mode and times; returns the name."""
    import shutil
    import time

    name = f"{path}.{os.getpid()}.{time.strftime('%Y-%m-%d@%H:%M:%S')}~"
    found = files.regular(os.path.realpath(path))
    with open(path, "rb") as file:
        pieces = iter(lambda: file.read(files.PIECE), b"")
        files.write_pieces(name, pieces, found.st_mode & 0o7777 if found else None)
    shutil.copystat(path, name)
    if found and os.geteuid() == 0:
        os.chown(name, found.st_uid, found.st_gid)
    return name
