"""Files that come in: hashed and put on the disk while another program still writes them, front to back.

What is on the disk leaves the page cache, which on a Spark is the memory that the GPU allocates from: a copy of 70 GB
would fill it beside a served model.
"""

from __future__ import annotations

import os

from sparkops.node import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# Files at a time: those that were there in part or whole are read beside the one that is being written.
AT_A_TIME = 4
# Seconds between two looks at a file that grows.
LOOK_EVERY = 0.02


class Arrival:
    """Follows files of these sizes in a folder, each from the moment it is there.

    Their writer must only append, and have written all when `sums` is called.
    """

    def __init__(self, folder: str, sizes: Mapping[str, int]) -> None:
        import threading
        from concurrent.futures import ThreadPoolExecutor

        self._folder = folder
        self._sizes = sizes
        self._lock = threading.Lock()
        self._waiting = list(sizes)
        self._ended, self._over = threading.Event(), False
        self._pool = ThreadPoolExecutor(AT_A_TIME)
        self._workers = [self._pool.submit(self._work) for _ in range(min(AT_A_TIME, len(sizes)))]

    def sums(self) -> dict[str, str]:
        """{file: sha256}, without those that are not of their size; all are on the disk. Raises Failure."""
        self._ended.set()
        found: dict[str, str] = {}
        for worker in self._workers:
            found.update(worker.result())
        return found

    def __enter__(self) -> Arrival:
        return self

    def __exit__(self, *_: object) -> None:
        # Where the writer has failed nobody asks for sums: what was read so far is left.
        self._over = True
        self._ended.set()
        self._pool.shutdown()

    def _work(self) -> dict[str, str]:
        found = {}
        while (name := self._next()) is not None:
            digest = self._follow(os.path.join(self._folder, name), self._sizes[name])
            if digest:
                found[name] = digest
        return found

    def _next(self) -> str | None:
        """A file that is there and nobody follows yet; None when no more will come."""
        while True:
            ended = self._ended.is_set()
            with self._lock:
                for name in self._waiting:
                    if os.path.exists(os.path.join(self._folder, name)):
                        self._waiting.remove(name)
                        return name
                if ended or self._over or not self._waiting:
                    return None
            self._ended.wait(LOOK_EVERY)

    def _follow(self, path: str, size: int) -> str:
        """The file's sha256 once it has its size, or "" when it has another in the end."""
        from sparkops.node import digest

        try:
            with open(path, "rb", buffering=0) as file:
                digested, seen, kept = digest.new("sha256", size), 0, 0
                piece = memoryview(bytearray(files.PIECE))
                while not self._over:
                    ended = self._ended.is_set()
                    if got := file.readinto(piece):
                        digested.update(piece[:got])
                        seen += got
                    elif ended or seen >= size:
                        break
                    else:
                        self._ended.wait(LOOK_EVERY)
                    if seen - kept >= files.SYNC_EVERY:
                        to_disk(file.fileno(), kept)
                        kept = seen
                to_disk(file.fileno(), kept)
        except OSError as error:
            raise files.refusal("read", path, error) from error
        return digested.hexdigest() if seen == size == os.path.getsize(path) else ""


def to_disk(fd: int, start: int) -> None:
    """A file's bytes from `start` on to the disk, and out of the page cache."""
    os.fsync(fd)
    os.posix_fadvise(fd, start, 0, os.POSIX_FADV_DONTNEED)
