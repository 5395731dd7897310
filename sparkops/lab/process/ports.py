"""Free ports of 127.0.0.1 for a lab. Below the range that the system hands out to connections by itself.

A node that is off holds no port, so a file in the user's cache remembers which numbers belong to which lab.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from sparkops.errors import LabError
from sparkops.lab.lab import write_file

ADDRESS = "127.0.0.1"
# The first of each kind, and how many are tried.
SSH, SERVICE, INDEX = 22001, 18001, 17001
TRIES = 900
# Each user's search begins at another hundred: two users' caches know nothing of each other.
USERS = TRIES // 100


class Ports(NamedTuple):
    """A node's: where its SSH server listens, and where what is deployed on it will."""

    ssh: int
    service: int


@contextmanager
def choosing(folder: Path) -> Iterator[Path]:
    """Held from the choice of ports until they are bound, so that two labs do not choose the same. `folder`: the
    user's cache; yields the file that remembers."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "ports.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder / "ports.json"


def choose(lab: Path, count: int, register: Path) -> tuple[int, list[Ports]]:
    """A port for the index of the lab in folder `lab`, and those of its `count` nodes; noted down in `register`.

    A node's two go together: who has the one is given no other lab's other. LabError when there are too few.
    """
    labs = remembered(register)
    taken = {number for numbers in labs.values() for number in numbers}
    usable = (n for n in order(os.getuid()) if n not in taken and free(SSH + n) and free(SERVICE + n))
    numbers = list(islice(usable, count))
    index = next((INDEX + n for n in order(os.getuid()) if free(INDEX + n)), None)
    if len(numbers) < count or index is None:
        raise LabError(f"too few free ports on {ADDRESS} for {count} nodes")
    write_file(register, json.dumps({**labs, str(lab): numbers}))
    return index, [Ports(SSH + n, SERVICE + n) for n in numbers]


def order(uid: int) -> list[int]:
    """The numbers in the order in which a user tries them."""
    first = uid % USERS * 100
    return [*range(first, TRIES), *range(first)]


def remembered(register: Path) -> dict[str, list[int]]:
    """The numbers of each lab that still is."""
    try:
        labs: dict[str, list[int]] = json.loads(register.read_text())
    except FileNotFoundError:
        return {}
    return {lab: numbers for lab, numbers in labs.items() if (Path(lab) / "lab.json").exists()}


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
