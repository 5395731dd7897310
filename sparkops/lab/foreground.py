"""Run a command on this terminal as if it had been started here: its streams, its signals, its exit status."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


def foreground(argv: Sequence[str], *, env: dict[str, str] | None = None, helper: bool = False) -> int:
    """Run a command and wait; its exit status, 128 + N when signal N ended it. FileNotFoundError, PermissionError.

    helper: argv is a program (nsenter) that forks the command: signals are for its child.
    """
    started: list[int] = []
    # Signals that come before there is a process to give them to.
    early: list[int] = []

    def forward(number: int) -> None:
        if not started:
            early.append(number)
        for process in started:
            for pid in (children(process) or [process]) if helper else [process]:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)

    with _handling(forward), subprocess.Popen(argv, env=env) as process:
        started.append(process.pid)
        for number in early:
            forward(number)
        code = process.wait()
    return code if code >= 0 else 128 - code


@contextmanager
def _handling(forward: Callable[[int], None]) -> Iterator[None]:
    def handle(number: int, _frame: FrameType | None) -> None:
        forward(number)

    before = {number: signal.signal(number, handle) for number in FORWARDED}
    # The terminal sends these to the command as well: whether they end it is its own affair.
    before |= {number: signal.signal(number, _leave) for number in (signal.SIGINT, signal.SIGQUIT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _leave(_number: int, _frame: FrameType | None) -> None:
    """A handler, since an ignored signal would stay ignored in the command."""


def children(pid: int) -> list[int]:
    """The processes that `pid` has forked (Linux)."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []
