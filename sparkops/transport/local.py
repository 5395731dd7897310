"""The executor as a process of this machine (`ansible_connection: local`)."""

from __future__ import annotations

import os
import subprocess

from sparkops.errors import ConnectionLost
from sparkops.node import bundle


class LocalChannel:
    """A child process's pipes."""

    def __init__(self, python: str) -> None:
        self._process = subprocess.Popen(
            bundle.argv(python),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        assert self._process.stdin and self._process.stdout and self._process.stderr
        self._stdin = self._process.stdin
        self._stdout = self._process.stdout.fileno()
        self._stderr = self._process.stderr

    def write(self, data: bytes) -> None:
        """See Channel."""
        try:
            self._stdin.write(data)
            self._stdin.flush()
        except (BrokenPipeError, ValueError):
            raise ConnectionLost(f"the executor ended early: {self.last_words()}") from None

    def read(self) -> bytes:
        """See Channel."""
        return os.read(self._stdout, 262144)

    def last_words(self) -> str:
        """See Channel."""
        return self._stderr.read().decode("utf-8", "replace").strip()[-2000:]

    def close(self) -> None:
        """See Channel."""
        if not self._stdin.closed:
            self._stdin.close()
        self._process.wait()
