"""A folder of the controller, put on the node: compared file by file, what differs fetched in one stream, written
beside, made durable together, and renamed.
"""

from __future__ import annotations

import os

from sparkops.node import digest, files, placing
from sparkops.node.api import Failure, Outcome
from sparkops.node.modes import mode_bits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from sparkops.node.api import Node, Tree

# More files than this are made durable by one sync of all that is written, instead of each by itself.
FEW = 64


class Wanted:
    """A file that differs or is not there: where, its sha256 and size, and whether something is there."""

    def __init__(self, path: str, sha256: str, size: int, there: bool) -> None:
        self.path = path
        self.sha256 = sha256
        self.size = size
        self.there = there
        self.temp = ""


def place(
    base: str,
    tree: Tree,
    attributes: placing.Attributes,
    folder_mode: str | None,
    node: Node,
    backup: bool,
    force: bool,
) -> Outcome:
    """Make the folder `base` have the tree's files; others in it stay. Result: dest, and those of path_info. Raises
    Failure.
    """
    folders = [path for path in (base, *(os.path.join(base, name) for name in tree.folders)) if _missing_folder(path)]
    wanted: list[Wanted] = []
    changes: list[str] = []
    for name, size, sha256 in tree.files:
        path = os.path.join(base, name)
        there = os.path.lexists(path)
        if os.path.isdir(path):
            raise Failure(f"{path} is a directory, and a file is to be put there", dest=path)
        if there and not force:
            continue
        if not there or not placing.same(path, placing.Content(sha256, size, None, None)):
            wanted.append(Wanted(path, sha256, size, there))
        elif files.set_attributes(path, attributes.mode, attributes.owner, attributes.group, node.check):
            changes.append(path)
    result = {"dest": base, "files": len(tree.files), "files_changed": len(wanted) + len(changes)}
    if not wanted and not changes and not folders:
        return Outcome.ok(**{**result, **files.path_info(base)})
    shown = "".join(f"{'~' if one.there else '+'} {one.path}\n" for one in wanted)[: files.DIFF_LIMIT]
    message = (
        f"{len(wanted) + len(changes)} of {len(tree.files)} files differ" if tree.files else "folders are not there"
    )
    if not node.check:
        for path in folders:
            _make(path, folder_mode, attributes)
        _write(wanted, attributes, node, backup)
        result.update(files.path_info(base))
    return Outcome.changed(message, shown, **result)


def _missing_folder(path: str) -> bool:
    if os.path.lexists(path) and not os.path.isdir(path):
        raise Failure(f"{path} is no directory, and one is to be put there", dest=path)
    return not os.path.isdir(path)


def _make(path: str, mode: str | None, attributes: placing.Attributes) -> None:
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise files.refusal("make the folder", path, error) from error
    files.set_attributes(path, mode, attributes.owner, attributes.group, False)


def _write(wanted: list[Wanted], attributes: placing.Attributes, node: Node, backup: bool) -> None:
    mark = os.urandom(6).hex()
    for number, one in enumerate(wanted):
        one.temp = os.path.join(os.path.dirname(one.path), f".sparkops-{mark}-{number}")
    few = len(wanted) <= FEW
    try:
        stream = Stream(node.contents([(one.sha256, one.size) for one in wanted]))
        for one in wanted:
            _write_one(one, stream, attributes, few)
        stream.finish()
        if not few:
            os.sync()
        for one in wanted:
            if backup and one.there:
                placing.save(one.path)
            os.rename(one.temp, one.path)
        for folder in sorted({os.path.dirname(one.path) for one in wanted}):
            files.sync_folder(folder)
    except OSError as error:
        raise files.refusal("write", str(error.filename or "the files"), error) from error
    finally:
        for one in wanted:
            files.discard(one.temp)


def _write_one(one: Wanted, stream: Stream, attributes: placing.Attributes, durable: bool) -> None:
    found = files.regular(one.path)
    mode = files.new_mode() if found is None else found.st_mode & 0o7777
    if attributes.mode is not None:
        mode = mode_bits(attributes.mode, mode, False, files.umask())
    seen = digest.new("sha256", one.size)
    with open(one.temp, "xb", opener=files.private) as file:
        for piece in stream.take(one.size):
            seen.update(piece)
            file.write(piece)
        files.own(file.fileno(), found, files.owner_id(attributes.owner), files.group_id(attributes.group))
        file.flush()
        os.fchmod(file.fileno(), mode)
        if durable:
            os.fsync(file.fileno())
    if seen.hexdigest() != one.sha256:
        raise Failure(f"the file for {one.path} changed on the controller while it was sent; run again", dest=one.path)


class Stream:
    """The bytes of many files, one behind the other."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._left = memoryview(b"")

    def take(self, size: int) -> Iterator[memoryview]:
        """The next `size` bytes."""
        while size:
            if not self._left:
                self._left = memoryview(next(self._pieces))
            part, self._left = self._left[:size], self._left[size:]
            size -= len(part)
            yield part

    def finish(self) -> None:
        """Take in the end, which may say that something was wrong."""
        for _ in self._pieces:
            pass
