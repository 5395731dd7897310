"""A lab's processes, as the kernel knows them: by network namespace and command line, so that a crash hides none."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from sparkops.errors import LabError


def processes() -> list[int]:
    """All processes of this machine."""
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def namespace(path: Path) -> tuple[int, int] | None:
    """What identifies the network namespace at `path`; None when there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def is_namespace(path: Path) -> bool:
    """Whether a network namespace is mounted at `path`."""
    return path.exists() and path.stat().st_dev == Path("/proc/self/ns/net").stat().st_dev


def netns(pid: int) -> tuple[int, int] | None:
    """The network namespace of a process; None when it has ended."""
    return namespace(Path(f"/proc/{pid}/ns/net"))


def arguments(pid: int) -> list[str]:
    """The command line of a process; empty when it has ended."""
    try:
        return os.fsdecode(Path(f"/proc/{pid}/cmdline").read_bytes()).split("\0")[:-1]
    except OSError:
        return []


def inside(*paths: Path) -> list[int]:
    """The processes in the network namespaces at `paths`, other than this one."""
    wanted = {namespace(path) for path in paths} - {None}
    return [pid for pid in processes() if pid != os.getpid() and netns(pid) in wanted] if wanted else []


def carrying(word: str) -> list[int]:
    """The processes that have `word` among their arguments."""
    return [pid for pid in processes() if word in arguments(pid)]


def leader(path: Path) -> int | None:
    """Process 1 of the container whose network namespace is at `path`, by its number out here."""
    for pid in inside(path):
        with suppress(OSError):
            for line in Path(f"/proc/{pid}/status").read_text().splitlines():
                if line.startswith("NSpid:") and len(line.split()) == 3 and line.split()[2] == "1":
                    return pid
    return None


def end(find: Callable[[], list[int]], timeout: float = 20.0) -> None:
    """Kill what `find` finds until it finds nothing, and see it reaped. LabError after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    killed: set[int] = set()
    while pids := find():
        if time.monotonic() > deadline:
            raise LabError(f"processes {', '.join(map(str, pids))} do not end")
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        killed.update(pids)
        time.sleep(0.02)
    # Process 1 inherits them, and in some containers it looks after its children only every few seconds.
    while time.monotonic() < deadline and any(Path(f"/proc/{pid}").exists() for pid in killed):
        for pid in killed:
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        time.sleep(0.02)
