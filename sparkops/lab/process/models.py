"""The checkpoints of a node: seeded once into the user's cache, copied from there with their holes."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

from sparkops.lab.nspawn.cache import cached, key


def seed(dest: Path, cache: Path) -> None:
    """Fill a node's models_dir. Raises OSError."""
    from sparkops.lab.standin import checkpoints

    sources = sorted(Path(checkpoints.__file__).parent.glob("*.py"))
    name = f"checkpoints-{key(*(source.read_bytes() for source in sources))}"
    copy_tree(cached(cache, name, checkpoints.seed), dest)


def copy_tree(source: Path, dest: Path) -> None:
    """Copy folders and files."""
    dest.mkdir(parents=True, exist_ok=True)
    for path in sorted(source.rglob("*")):
        target = dest / path.relative_to(source)
        if path.is_dir():
            target.mkdir(exist_ok=True)
        else:
            copy_sparse(path, target)


def copy_sparse(source: Path, dest: Path) -> None:
    """Copy what a file holds; where it has holes the copy has them too (lseek(2), SEEK_DATA)."""
    with source.open("rb") as reader, dest.open("wb") as writer:
        size = os.fstat(reader.fileno()).st_size
        writer.truncate(size)
        for start, end in extents(reader.fileno(), size):
            copy_range(reader.fileno(), writer.fileno(), start, end)


def extents(descriptor: int, size: int) -> Iterator[tuple[int, int]]:
    """Where a file has data: (start, end) in order."""
    end = 0
    while end < size:
        try:
            start = os.lseek(descriptor, end, os.SEEK_DATA)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            return  # only a hole is left
        end = os.lseek(descriptor, start, os.SEEK_HOLE)
        yield start, end


def copy_range(reader: int, writer: int, start: int, end: int) -> None:
    """Copy the bytes from `start` to `end`."""
    while start < end and (data := os.pread(reader, min(end - start, 1 << 20), start)):
        start += os.pwrite(writer, data, start)
