"""Stops a run half-way: by Ctrl-C, by kill -9, with the wheel index frozen."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.e2e.nodes import ROOT, STATE, Nodes, eventually

# What an executor has in its argv; a job has it too, and a session of its own.
EXECUTOR = "sparkops boot"
EXECUTORS = f"""
import os
jobs = set()
folder = "{STATE}/state/jobs"
for key in os.listdir(folder) if os.path.isdir(folder) else []:
    try:
        jobs.add(open(os.path.join(folder, key, "pid")).read().split()[0])
    except (OSError, IndexError):
        pass
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        words = open("/proc/" + pid + "/cmdline", "rb").read()
        session = open("/proc/" + pid + "/stat").read().rpartition(")")[2].split()[3]
    except OSError:
        continue
    if b"{EXECUTOR}" in words and int(pid) != os.getpid() and session not in jobs:
        print(pid, words[:60])
"""
# Whatever moves weights on a node, all at once: the executor, the jobs, the hub's client, rsync.
KILL_WEIGHTS = f"pkill -9 -u spark -f '{EXECUTOR}|/bin/hf |rsync'; true"


class Started:
    """A run under way, in a process group of its own as a shell would have it."""

    def __init__(self, nodes: Nodes, log: Path, *words: str) -> None:
        self._log = log
        with log.open("wb") as out:
            self.process = subprocess.Popen(
                nodes.argv("--json", *words),
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    @property
    def said(self) -> str:
        """What it has printed so far."""
        return self._log.read_text()

    def begun(self) -> None:
        """Wait until it has gone to the nodes."""
        eventually(lambda: '"host_start"' in self.said, pause=0.01)

    def interrupt(self) -> int:
        """Ctrl-C at its terminal; its exit code."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGINT)
        return self.process.wait(30)

    def kill(self) -> int:
        """kill -9 of sparkops itself, which runs under `lab run`; its exit code."""
        for pid in children(self.process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return self.process.wait(30)


def children(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []


@contextmanager
def frozen(nodes: Nodes) -> Iterator[None]:
    """The lab's index of wheels accepts connections and answers nothing."""
    found = [int(path.parent.name) for path in Path("/proc").glob("[0-9]*/cmdline") if _serves(path, nodes)]
    assert found, "no process serves this lab's wheels"
    for pid in found:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in found:
            os.kill(pid, signal.SIGCONT)


def _serves(path: Path, nodes: Nodes) -> bool:
    try:
        words = path.read_bytes().split(b"\0")
    except OSError:
        return False
    return os.fsencode(nodes.dir / "wheels") in words


def no_executor_stays(nodes: Nodes, node: str, seconds: float = 5) -> None:
    """Wait until a node runs no executor, but for detached jobs."""
    eventually(lambda: not nodes.on(node, "python3", "-c", EXECUTORS), seconds)
