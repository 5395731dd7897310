"""Which texts a unit has had: beside it, so that only who may write units may add one.

A release keeps its unit's text where the service may write. Taken from there as it stands, a server that was taken over
could have a unit of its own making installed by root, with the next rollback.
"""

from __future__ import annotations

import os

from sparkops.node import files
from sparkops.node.facts import read

# Digests that are kept: more than releases are.
MOST = 50


def record(path: str) -> str:
    """A unit's record: a sha256 a line, the newest last. systemd passes over files of that name."""
    return path + ".known"


def known(path: str, data: bytes) -> bool:
    """Whether the unit at `path` has had this text, now or before."""
    return digest(data) in [*read(record(path)).split(), digest(files.read(path) if os.path.isfile(path) else b"")]


def remember(path: str, data: bytes) -> None:
    """Note the text that the unit at `path` has now. Raises Failure."""
    before = read(record(path)).split()
    if digest(data) not in before:
        lines = [*before, digest(data)][-MOST:]
        files.write(record(path), "".join(f"{line}\n" for line in lines).encode(), 0o644)


def forget(path: str) -> None:
    """Take a unit's record away."""
    files.discard(record(path))


def digest(data: bytes) -> str:
    """The sha256, in hex."""
    from hashlib import sha256

    return sha256(data).hexdigest()
