"""Digests of what is small, without OpenSSL: to load it takes longer (2 ms) than they do."""

from __future__ import annotations

from sparkops.node import boot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hashlib import _Hash

# Bytes up to which Python's own sha256 is done before OpenSSL is loaded.
SMALL = 1 << 20


def new(algorithm: str, size: int) -> _Hash:
    """A hash object of hashlib's kind for about `size` bytes."""
    if algorithm == "sha256" and size <= SMALL:
        found: _Hash = boot.sha256()
        return found
    import hashlib

    return hashlib.new(algorithm)
