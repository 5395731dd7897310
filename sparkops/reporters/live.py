"""The live picture: what happened scrolls by, and below it one line a node that moves."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sparkops.events import Event, Recap, RunStart
from sparkops.reporters import recap
from sparkops.reporters.board import Board
from sparkops.reporters.transcript import Line, Transcript

STYLES = {
    "ok": "green",
    "changed": "yellow",
    "failed": "bold red",
    "unreachable": "bold magenta",
    "rescued": "cyan",
    "ignored": "cyan",
    "unknown": "blue",
    "skipped": "dim",
    "notice": "magenta",
}


class LiveReporter:
    """Draws from a run's start on; at the end of `with` the nodes' lines are taken away again, also after Ctrl-C."""

    def __init__(self, stream: TextIO, *, verbosity: int = 0, diff: bool = False) -> None:
        self._console = Console(file=stream, highlight=False, emoji=False, markup=False)
        self._transcript = Transcript(verbosity=verbosity, diff=diff)
        self._board = Board(self._console)
        self._check = False
        # One event at a time: its lines stay together, and the board sees a host's events in their order.
        self._lock = threading.Lock()

    def __call__(self, event: Event) -> None:
        with self._lock:
            if isinstance(event, RunStart):
                self._check = event.check
                self._board.start()
            if isinstance(event, Recap):
                self._board.stop()
                self._recap(event)
                return
            self._board.take(event)
            for line in self._transcript.lines(event):
                self._console.print(styled(line), soft_wrap=True)

    def __enter__(self) -> LiveReporter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._board.stop()

    def _recap(self, event: Recap) -> None:
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        table.add_column("node", no_wrap=True)
        shown = recap.columns(event)
        for state in shown:
            table.add_column(state, justify="right", no_wrap=True)
        for host, row in event.hosts.items():
            numbers = [row.get(state, 0) for state in shown]
            cells = [Text(str(n), STYLES[s] if n else "dim") for s, n in zip(shown, numbers, strict=True)]
            table.add_row(Text(host), *cells)
        self._console.print()
        self._console.print(table)
        self._console.print(Text(recap.closing(event, check=self._check), "bold"), soft_wrap=True)


def styled(line: Line) -> Text:
    """A line in its state's colour, a diff in those of its sides."""
    if line.kind != "diff":
        return Text(line.text, STYLES.get(line.kind, ""))
    text = Text()
    for part in line.text.splitlines(keepends=True):
        text.append(part, {"+": "green", "-": "red", "@": "cyan"}.get(part[0], "dim"))
    return text
