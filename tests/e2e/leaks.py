"""Looks for a secret where it must not be: in the processes of this machine, those on the nodes among them."""

from __future__ import annotations

import threading
from pathlib import Path
from types import TracebackType

PAUSE = 0.02


class Watch:
    """While it is entered, reads argv and environment of every process again and again; `found` is what had it."""

    def __init__(self, secret: str) -> None:
        self.found: set[str] = set()
        self.looked = 0
        self._secret = secret.encode()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(PAUSE):
            self.looked += 1
            for process in Path("/proc").glob("[0-9]*"):
                for name in ("cmdline", "environ"):
                    try:
                        data = (process / name).read_bytes()
                    except OSError:
                        continue
                    if self._secret in data:
                        self.found.add(f"{process.name}/{name}: {data!r}")
