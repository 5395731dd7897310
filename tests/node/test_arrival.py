"""Files that are followed while they are written."""

from __future__ import annotations

import hashlib
import os
import random
import threading
import time
from pathlib import Path

import pytest

from sparkops.node import digest, files, pagecache
from sparkops.node.api import Failure
from sparkops.node.arrival import Arrival
from tests.e2e.nodes import eventually

MIB = 1 << 20


def written(path: Path, data: bytes, pieces: int, pause: float = 0.0) -> None:
    """Appended a piece at a time."""
    size = -(-len(data) // pieces) or 1
    with path.open("ab", buffering=0) as file:
        for start in range(0, len(data), size):
            file.write(data[start : start + size])
            time.sleep(pause)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_files_that_grow_and_files_that_were_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "SYNC_EVERY", 50_000)
    data = {f"{number}": random.Random(number).randbytes(number * 40_000) for number in range(8)}
    (tmp_path / "7").write_bytes(data["7"])
    (tmp_path / "6").write_bytes(data["6"][:1000])
    with Arrival(str(tmp_path), {name: len(what) for name, what in data.items()}) as arriving:
        for name in "01234":
            written(tmp_path / name, data[name], 7, 0.01)
        written(tmp_path / "5", data["5"], 1)
        written(tmp_path / "6", data["6"][1000:], 5, 0.01)
        assert arriving.sums() == {name: sha256(what) for name, what in data.items()}


def test_a_file_of_another_size_has_no_sum(tmp_path: Path) -> None:
    with Arrival(str(tmp_path), {"short": 10, "long": 10, "none": 10, "right": 10}) as arriving:
        for name, size in {"short": 9, "long": 11, "right": 10}.items():
            (tmp_path / name).write_bytes(bytes(size))
        assert arriving.sums() == {"right": sha256(bytes(10))}


def test_most_is_hashed_before_the_last_byte_has_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the hash would come after the copy, and not beside it."""

    class Counting:
        seen = 0

        def update(self, piece: memoryview) -> None:
            Counting.seen += len(piece)

        def hexdigest(self) -> str:
            return str(Counting.seen)

    monkeypatch.setattr(digest, "new", lambda *_: Counting())
    with Arrival(str(tmp_path), {"a": 8 * MIB}) as arriving:
        written(tmp_path / "a", bytes(8 * MIB - 1), 1)
        eventually(lambda: Counting.seen == 8 * MIB - 1, 5, 0.01)
        written(tmp_path / "a", b"a", 1)
        assert arriving.sums() == {"a": str(8 * MIB)}


def test_what_has_come_is_not_left_in_the_page_cache(tmp_path: Path) -> None:
    if pagecache.resident(str(fill(tmp_path / "probe", 1))) == 0:
        pytest.fail("this file system keeps no page cache: point TMPDIR at a disk's")
    with Arrival(str(tmp_path), {"a": 4 * MIB}) as arriving:
        fill(tmp_path / "a", 4)
        arriving.sums()
    assert pagecache.resident(str(tmp_path / "a")) == 0


def fill(path: Path, size: int) -> Path:
    path.write_bytes(os.urandom(size * MIB))
    return path


def test_a_writer_that_fails_is_not_waited_for(tmp_path: Path) -> None:
    begun = time.monotonic()
    fill(tmp_path / "a", 1)
    with pytest.raises(Failure, match="the cable"), Arrival(str(tmp_path), {"a": 2 * MIB, "b": MIB}):
        raise Failure("the cable")
    assert time.monotonic() - begun < 2
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("ThreadPool")]


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with Arrival(str(tmp_path), {"a": 1}) as arriving, pytest.raises(Failure, match="/a: Is a directory"):
        arriving.sums()
