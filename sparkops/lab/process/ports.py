"""Free ports of 127.0.0.1 for a lab. Below the range that the system hands out to connections by itself."""

from __future__ import annotations

import fcntl
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from sparkops.errors import LabError

ADDRESS = "127.0.0.1"
# The first of each kind, and how many labs' worth of them are tried.
SSH, SERVICE, INDEX = 22001, 18001, 17001
TRIES = 1000


class Ports(NamedTuple):
    """A node's: where its SSH server listens, and where what is deployed on it will."""

    ssh: int
    service: int


@contextmanager
def choosing(folder: Path) -> Iterator[None]:
    """Held from the choice of ports until they are bound, so that two labs do not choose the same; `folder` is the
    user's cache."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "ports.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def choose(count: int) -> tuple[int, list[Ports]]:
    """A port for the index, and those of `count` nodes. A node's two go together: as its SSH server holds the one,
    the other is no later lab's. LabError when there are too few."""
    pairs = (Ports(SSH + n, SERVICE + n) for n in range(TRIES))
    found = [pair for pair, _ in zip((p for p in pairs if all(map(free, p))), range(count), strict=False)]
    index = next(filter(free, range(INDEX, INDEX + TRIES)), None)
    if len(found) < count or index is None:
        raise LabError(f"too few free ports on {ADDRESS} for {count} nodes")
    return index, found


def free(port: int) -> bool:
    """Whether a server could be started there."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((ADDRESS, port))
            probe.listen(1)
        except OSError:
            return False
    return True


def answers(port: int) -> bool:
    """Whether a server listens there."""
    try:
        socket.create_connection((ADDRESS, port), timeout=1).close()
    except OSError:
        return False
    return True
