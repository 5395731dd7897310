"""Plain lines, for pipes, logs and terminals that can't move their cursor."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import TextIO

from sparkops.events import Event, Progress, Recap, RunStart, TaskStart
from sparkops.reporters import recap, words
from sparkops.reporters.sink import Sink
from sparkops.reporters.transcript import Transcript

PROGRESS_SECONDS = 10.0


class PlainReporter:
    """A line for each task that moved or broke, for each host that is done, now and then for a long step; a recap."""

    def __init__(
        self,
        stream: TextIO,
        *,
        verbosity: int = 0,
        diff: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sink = Sink(stream)
        self._transcript = Transcript(verbosity=verbosity, diff=diff)
        self._clock = clock
        self._check = False
        self._quiet_since: dict[str, float] = {}

    def __call__(self, event: Event) -> None:
        text = "\n".join(self._lines(event))
        if text:
            self._sink.write(text + "\n")

    def __enter__(self) -> PlainReporter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Every line has been flushed already."""

    def _lines(self, event: Event) -> list[str]:
        match event:
            case TaskStart():
                self._quiet_since[event.host] = self._clock()
            case Progress():
                return self._progress(event)
            case Recap():
                return ["", *recap.lines(event), recap.closing(event, check=self._check)]
            case RunStart():
                self._check = event.check
        return [line.text for line in self._transcript.lines(event)]

    def _progress(self, event: Progress) -> list[str]:
        now = self._clock()
        if now - self._quiet_since.setdefault(event.host, now) < PROGRESS_SECONDS:
            return []
        self._quiet_since[event.host] = now
        return [words.step(event, self._transcript.width)]
