"""One run of a command and what it cost: wall and CPU seconds of it and of all that it left, and its peak memory."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Command:
    """What to run; `env` is all of its environment but HOME and PATH."""

    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: Path | None = None


@dataclass(frozen=True)
class Cost:
    """wall, cpu: seconds, cpu also of daemons that it left. rss: MiB of its largest process. others: the share of the
    machine that others used meanwhile.
    """

    wall: float
    cpu: float
    rss: float
    others: float
    rc: int


def adopt_strays() -> None:
    """Become the parent of what our children leave behind, so that it is counted and ended."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    ADOPTING.add(os.getpid())


def measure(command: Command, log: Path, nodes_cpu: Callable[[], float] = float) -> Cost:
    """Run it and wait for it; what it prints goes to `log`. nodes_cpu: seconds that its nodes have used so far, which
    are none of others'.
    """
    at_nodes = nodes_cpu()
    before, busy, start = resource.getrusage(resource.RUSAGE_CHILDREN), _busy(), time.perf_counter()
    with log.open("wb") as out:
        one = started(command, out.fileno())
        _, status, usage = os.wait4(one.pid, 0)
    wall = time.perf_counter() - start
    busy = _busy() - busy
    one.returncode = os.waitstatus_to_exitcode(status)
    end_strays()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    others = max(0.0, busy - cpu - (nodes_cpu() - at_nodes)) / (wall * (os.cpu_count() or 1))
    return Cost(wall, cpu, usage.ru_maxrss / 1024, others, one.returncode)


def memory(command: Command, log: Path, every: float = 0.05) -> float:
    """MiB at the peak of the command's process tree: summed PSS. A run of its own, since looking costs time."""
    peak = 0
    with log.open("wb") as out:
        one = started(command, out.fileno())
        while one.poll() is None:
            peak = max(peak, sum(_pss(pid) for pid in _tree(one.pid)))
            time.sleep(every)
    end_strays()
    return peak / 1024


def end_strays() -> None:
    """End and take in the processes that were left to us (ControlPersist masters and the like)."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in _adopted():
            for each in reversed(_tree(pid)):
                _signal(each, number)
        end = time.monotonic() + 2
        while (left := _adopted()) and time.monotonic() < end:
            for pid in left:
                os.waitpid(pid, os.WNOHANG)
            time.sleep(0.01)
        if not left:
            return


# Children that we started ourselves and that stay: the nodes, a proxy.
KEPT: set[int] = set()
# Ourselves, once strays are ours: before that a child may be anybody's.
ADOPTING: set[int] = set()


def keep_children() -> None:
    """What is a child now is no stray later."""
    KEPT.update(_children(os.getpid()))


def _adopted() -> list[int]:
    if os.getpid() not in ADOPTING:
        return []
    return [pid for pid in _children(os.getpid()) if pid not in KEPT]


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def started(command: Command, out: int) -> subprocess.Popen[bytes]:
    """The command, running; stdout and stderr go to `out`."""
    env = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.Popen(
        list(command.argv),
        env={**env, "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", **command.env},
        cwd=command.cwd,
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def _busy() -> float:
    """CPU seconds that this machine has worked since it started (idle and waiting left out)."""
    fields = [int(value) for value in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / TICK


def _children(pid: int) -> list[int]:
    try:
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def _tree(pid: int) -> list[int]:
    found, todo = [], [pid]
    while todo:
        found.append(todo.pop())
        todo += _children(found[-1])
    return found


def _pss(pid: int) -> int:
    """KiB."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except (OSError, ProcessLookupError):
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
