"""Tasks on a node of the nspawn lab: an executor by `lab exec`, without SSH and without the runner."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sparkops.node import bundle
from sparkops.node.frames import Link

LAB = [sys.executable, "-c", "from sparkops.cli.lab import lab; lab()"]
STATE = "~/.local/share/sparkops/state"


def lab(verb: str, folder: Path, *words: str) -> str:
    done = subprocess.run([*LAB, verb, "--dir", str(folder), *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@contextmanager
def nspawn_lab(folder: Path) -> Iterator[Path]:
    """A lab of one node, spark-1."""
    try:
        lab("up", folder, "--driver", "nspawn", "--nodes", "1")
        yield folder
    finally:
        lab("down", folder)


class OnNode:
    """spark-1, as `user`."""

    def __init__(self, folder: Path, user: str) -> None:
        self.folder = folder
        self.user = user

    def sh(self, command: str) -> str:
        """A command as the user, with nothing of a login's environment."""
        return lab("exec", self.folder, "spark-1", "--", "runuser", "-u", self.user, "--", "sh", "-c", f"cd; {command}")

    def task(
        self, module: str, check: bool = False, kinds: dict[str, str] | None = None, **args: Any
    ) -> dict[str, Any]:
        """Run one task; the answer has state, msg, diff, result."""
        argv = [*LAB, "exec", "--dir", str(self.folder), "spark-1", "--", "runuser", "-u", self.user, "--"]
        argv += bundle.argv("python3")
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdin and process.stdout
            link = Link(process.stdout.fileno(), process.stdin.fileno())
            link.write(bundle.preamble([module]))
            link.send({"op": "open", "state_dir": STATE, "check": check})
            link.send({"op": "window", "tasks": [{"module": module, "args": args, "kinds": kinds or {}}]})
            answer: dict[str, Any] = {}
            while (message := link.receive()[0])["ev"] != "done":
                answer = message if message["ev"] == "result" else answer
            link.send({"op": "close"})
        return answer
