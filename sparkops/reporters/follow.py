"""Followed journals on a terminal or a pipe: hosts' lines merged by time, each with its host's name in its colour."""

from __future__ import annotations

import _thread
import os
import select
import sys
import threading
import time
from collections.abc import Sequence
from types import TracebackType
from typing import TextIO

from sparkops.events import Event, HostEnd, Notice, Output
from sparkops.reporters import words
from sparkops.reporters.merging import Merger

COLOURS = (36, 33, 32, 35, 34, 91)
# Seconds: how long a line waits for older ones of other hosts, and how often it is looked whether it has.
HOLD, TURN = 0.4, 0.1


class Painter:
    """Writes a host's line, its name in its own colour on a terminal, unless NO_COLOR is set (no-color.org)."""

    def __init__(self, stream: TextIO, hosts: Sequence[str]) -> None:
        self._stream = stream
        self._hosts = {name: COLOURS[at % len(COLOURS)] for at, name in enumerate(hosts)}
        self._width = max(map(len, hosts), default=0)
        self._plain = not stream.isatty() or bool(os.environ.get("NO_COLOR"))

    def write(self, lines: Sequence[tuple[str, str]]) -> None:
        """Write (host, line) pairs. Raises BrokenPipeError."""
        for host, line in lines:
            name = f"{host:<{self._width}}"
            name = name if self._plain else f"\x1b[{self._hosts.get(host, 0)}m{name}\x1b[0m"
            self._stream.write(f"{name}  {words.printable(line)}\n")
        self._stream.flush()


class FollowReporter:
    """Shows followed lines on `stream`, and on `errors` which hosts have gone while the others go on.

    Whoever reads us having gone (`| head`) ends the run: there is nothing else to it. `broken` says so.
    """

    def __init__(self, stream: TextIO, hosts: Sequence[str], errors: TextIO | None = None) -> None:
        self.broken = False
        self._stream = stream
        self._painter = Painter(stream, hosts)
        self._errors = errors or sys.stderr
        self._merger = Merger(HOLD)
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._go_on, daemon=True)

    def __call__(self, event: Event) -> None:
        match event:
            case Output():
                with self._lock:
                    self._merger.add(event.host, event.lines, time.monotonic())
            case Notice():
                self._say(words.notice(event))
            case HostEnd() if event.state != "ok" and event.msg != "interrupted":
                self._say(f"{event.host}: {words.printable(event.msg)}")

    def __enter__(self) -> FollowReporter:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
        if not self.broken:
            self._painter.write(self._merger.rest())

    def _say(self, text: str) -> None:
        self._errors.write(text + "\n")
        self._errors.flush()

    def _go_on(self) -> None:
        try:
            while not self._over.wait(TURN):
                if _has_gone(self._stream):
                    raise BrokenPipeError
                with self._lock:
                    lines = self._merger.due(time.monotonic())
                self._painter.write(lines)
        except BrokenPipeError:
            self.broken = True
            _thread.interrupt_main()


def _has_gone(stream: TextIO) -> bool:
    """Whether a pipe's reader has closed it: without a new line to write nothing else would tell."""
    try:
        poll = select.poll()
        poll.register(stream.fileno(), 0)
        return any(event & select.POLLERR for _, event in poll.poll(0))
    except (OSError, ValueError):
        # A stream of a test has no descriptor.
        return False
