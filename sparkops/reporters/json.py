"""JSON lines: one event a line on the stream, and nothing else there; what is for people goes to stderr."""

from __future__ import annotations

import json
import sys
from types import TracebackType
from typing import TextIO

from sparkops.events import Event, Notice, TaskStart, document
from sparkops.reporters.sink import Sink
from sparkops.reporters.words import notice


class JsonReporter:
    """Writes each event as one JSON object (`events.document`), in ASCII; a task's start is for the screen only."""

    def __init__(self, stream: TextIO, notices: TextIO | None = None) -> None:
        self._lines = Sink(stream)
        self._notices = Sink(notices or sys.stderr)

    def __call__(self, event: Event) -> None:
        if isinstance(event, Notice):
            self._notices.write(notice(event) + "\n")
        elif not isinstance(event, TaskStart):
            # A variable may hold what JSON has no word for (a date in YAML): its text will do.
            self._lines.write(json.dumps(document(event), default=str) + "\n")

    def __enter__(self) -> JsonReporter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Every line has been flushed already."""
