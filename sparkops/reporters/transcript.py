"""Which events are worth a line, and what it says: the part that plain lines and the live picture share."""

from __future__ import annotations

from typing import NamedTuple

from sparkops.events import Event, Handler, HostEnd, HostStart, Notice, Output, Preflight, RunStart, Task
from sparkops.reporters import words


class Line(NamedTuple):
    """Text of one line or more, and what it is: a state, `diff`, `notice`, or nothing."""

    text: str
    kind: str = ""


class Transcript:
    """Turns a run's events into lines. A host's events come one after another, hosts' mixed."""

    def __init__(self, *, verbosity: int = 0, diff: bool = False) -> None:
        self.width = 0
        self._verbosity = verbosity
        self._diff = diff
        self._check = False
        self._failures: dict[str, str] = {}

    def lines(self, event: Event) -> list[Line]:
        match event:
            case RunStart():
                self._check = event.check
                self.width = max(map(len, event.hosts), default=0)
                return [Line(words.headline(event))]
            case HostStart() if self._verbosity:
                return [Line(words.host_start(event, self.width))]
            case Task() | Handler():
                return self._task(event)
            case Preflight():
                everything = self._check or self._verbosity > 0
                return [Line(text, kind) for text, kind in words.preflight(event, everything=everything)]
            case Output():
                return [Line(f"{event.host:<{self.width}}  {words.printable(line)}") for line in event.lines]
            case Notice():
                return [Line(words.notice(event), "notice")]
            case HostEnd():
                known = self._failures.pop(event.host, None) == event.msg
                return [Line(words.host_end(event, self.width, known=known), event.state)]
            case _:
                return []

    def _task(self, event: Task | Handler) -> list[Line]:
        if event.state == "failed":
            self._failures[event.host] = event.msg
        said = event.module == "debug" and event.state == "ok"
        if event.state not in words.LOUD and not said and not self._verbosity:
            return []
        lines = [Line(words.task(event, self.width), event.state)]
        if self._diff and event.diff:
            lines.append(Line(words.printable(event.diff.rstrip("\n")), "diff"))
        if self._verbosity > 1 and event.result:
            lines.append(Line(words.result(event)))
        return lines
