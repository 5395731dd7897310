"""Keeps the executor's byte-code on the node, for the next run to start from: 12 ms of compiling, and the sources' way.

In the login user's own folder, written when the controller has gone and never in check mode. boot.py reads it.
"""

from __future__ import annotations

import os

from sparkops.node import boot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sparkops.node.boot import Modules

# How many are kept: controllers of several versions, and pythons of several.
KEPT = 4


def keep(modules: Modules) -> None:
    """Write the byte-code of all modules; where that can't be, the next run gets sources as this one did."""
    data = byte_code(modules)
    place = boot.folder()
    path = os.path.join(place, boot.file_name(modules.key))
    beside = f"{path}.{os.getpid()}"
    try:
        os.makedirs(place, 0o700, exist_ok=True)
        os.chmod(place, 0o700)
        with open(beside, "xb", opener=_private) as file:
            file.write(boot.checksum(data) + data)
            file.flush()
            os.fsync(file.fileno())
        os.rename(beside, path)
        _prune(place)
    except OSError:
        return


def byte_code(modules: Modules) -> bytes:
    """What boot.py takes in place of the sources."""
    import marshal

    return marshal.dumps({name: marshal.dumps(modules.code(name)) for name in modules.names()})


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)


def _prune(place: str) -> None:
    paths = [os.path.join(place, name) for name in os.listdir(place)]
    for path in sorted(paths, key=lambda path: os.lstat(path).st_mtime)[:-KEPT]:
        os.unlink(path)
