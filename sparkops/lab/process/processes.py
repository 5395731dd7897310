"""The processes of a simulated node: found by an environment entry that all of them inherit, and stopped.

There are no cgroups without root, so a set of processes is: those that carry the entry, whatever descends from them,
and the sessions that one of them leads (a program may overwrite its own environment).
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
# A process that was told to stop is looked at again so many seconds later.
INTERVAL = 0.02
# States of a process that has ended and waits for its parent to notice.
ENDED = ("Z", "X")


@dataclass(frozen=True)
class Process:
    """A process; `started` (in the system's own terms) tells it from a later one with the same pid."""

    pid: int
    parent: int
    session: int
    started: str
    environment: tuple[bytes, ...] = ()


def find(wanted: Callable[[bytes], bool]) -> list[Process]:
    """The living processes of a set but this one: `wanted` says which environment entries mark it."""
    return members(table(), wanted, without=os.getpid())


def marked(wanted: Callable[[bytes], bool]) -> list[Process]:
    """The living processes but this one that carry a wanted entry themselves."""
    return [p for p in table() if any(map(wanted, p.environment)) and p.pid != os.getpid()]


def members(everyone: list[Process], wanted: Callable[[bytes], bool], without: int) -> list[Process]:
    """Who of `everyone` carries a wanted entry, descends from such a one, or is in a session that one of them leads."""
    found = {process.pid for process in everyone if any(map(wanted, process.environment))}
    while more := {p.pid for p in everyone if p.parent in found or p.session in found} - found:
        found |= more
    return [process for process in everyone if process.pid in found and process.pid != without]


def table() -> list[Process]:
    """Every living process whose environment this user may see."""
    return linux_table() if sys.platform == "linux" else ps_table()


def linux_table() -> list[Process]:
    """The table from /proc."""
    found = []
    for folder in PROC.iterdir():
        if not folder.name.isdigit():
            continue
        with contextlib.suppress(OSError):  # it ended meanwhile, or is another user's
            environment = (folder / "environ").read_bytes().split(b"\0")
            fields = stat(folder)
            if fields[0] not in ENDED:
                pid = int(folder.name)
                found.append(Process(pid, int(fields[1]), int(fields[3]), fields[19], tuple(environment)))
    return found


def ps_table() -> list[Process]:
    """The same elsewhere (macOS): `ps -E` shows the environment of this user's processes after the command."""
    argv = ["ps", "-xwwE", "-o", "pid=,ppid=,pgid=,lstart=,command="]
    return [parse_ps(line) for line in subprocess.run(argv, stdout=subprocess.PIPE, check=True).stdout.splitlines()]


def parse_ps(line: bytes) -> Process:
    """A line of `ps -E -o pid=,ppid=,pgid=,lstart=,command=`: lstart is five words, the environment comes last."""
    words = line.split()
    pid, parent, group = map(int, words[:3])
    return Process(pid, parent, group, b" ".join(words[3:8]).decode(), tuple(words[8:]))


def stop(look: Callable[[], list[Process]], grace: float) -> None:
    """End the processes that `look` finds, and those they start meanwhile: SIGTERM, and SIGKILL after `grace` s."""
    end = time.monotonic() + grace
    told: set[Process] = set()
    while left := look() or again(look):
        if time.monotonic() < end:
            send((process for process in left if process not in told), signal.SIGTERM)
            told.update(left)
        else:
            send(left, signal.SIGKILL)
        time.sleep(INTERVAL)


def again(look: Callable[[], list[Process]]) -> list[Process]:
    """A second look a little later: a process shows no environment for a moment while it becomes another program."""
    time.sleep(INTERVAL)
    return look()


def send(processes: Iterable[Process], number: signal.Signals) -> None:
    """Signal processes, each only if it is still the one that was found."""
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            if started(process.pid) == process.started:
                os.kill(process.pid, number)


def started(pid: int) -> str:
    """When a process was started, as in `Process.started`; "" when it is gone."""
    if sys.platform != "linux":
        argv = ["ps", "-o", "lstart=", "-p", str(pid)]
        return " ".join(subprocess.run(argv, stdout=subprocess.PIPE, check=False, text=True).stdout.split())
    try:
        fields = stat(PROC / str(pid))
    except OSError:
        return ""
    return "" if fields[0] in ENDED else fields[19]


def stat(folder: Path) -> list[str]:
    """The fields of a process behind its name, which may hold anything (proc(5)): state, ppid, pgrp, session ...; its
    start is the 20th of these."""
    return (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
