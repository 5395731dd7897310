"""What a run shows while it goes: a live picture, plain lines, or JSON lines. Each reads `events` and nothing else."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Protocol, TextIO

from sparkops.events import Event


class Reporter(Protocol):
    """Takes events, from many threads at once, between `with` and its end; never stops a run."""

    def __call__(self, event: Event) -> None: ...

    def __enter__(self) -> Reporter: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def choose(*, json: bool, stream: TextIO, verbosity: int = 0, diff: bool = False) -> Reporter:
    """JSON lines where asked for, the live picture on a terminal that can move its cursor, else plain lines.

    `verbosity` 1 shows ok and skipped tasks too, 2 their results; `diff` shows what changes in files.
    """
    if json:
        from sparkops.reporters.json import JsonReporter

        return JsonReporter(stream)
    if _can_draw(stream):
        from sparkops.reporters.live import LiveReporter

        return LiveReporter(stream, verbosity=verbosity, diff=diff)
    from sparkops.reporters.plain import PlainReporter

    return PlainReporter(stream, verbosity=verbosity, diff=diff)


def _can_draw(stream: TextIO) -> bool:
    unicode = (stream.encoding or "").lower().startswith("utf")
    return stream.isatty() and unicode and os.environ.get("TERM", "dumb") not in ("dumb", "unknown")
