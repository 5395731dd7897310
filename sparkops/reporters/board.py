"""One line a node that moves: task, how far, elapsed. Rich draws it; this says what each line holds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, RenderableType
from rich.constrain import Constrain
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.table import Column
from rich.text import Text

from sparkops import events
from sparkops.reporters import words
from sparkops.reporters.columns import Elapsed, Quantity, Sign

# Lines of the terminal that are left to what scrolls by above.
KEPT_FREE = 6
# The terminal's echo of Ctrl-C must not wrap the last line: it could then not be taken away.
MARGIN = 3

CLEARED = {"step": None, "unit": "", "quantity": "", "state": "", "seconds": None}


class Board(Progress):
    """A rich progress display with a row a host; its bar is the long step's while there is one, else the play's."""

    def __init__(self, console: Console) -> None:
        self._screen = console
        super().__init__(
            Sign(),
            TextColumn("{task.fields[host]}", markup=False, table_column=Column(no_wrap=True, max_width=20)),
            TextColumn("{task.fields[place]}", style="dim", markup=False, table_column=Column(no_wrap=True)),
            TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, ratio=1)),
            BarColumn(8),
            Quantity(),
            Elapsed(),
            console=console,
            transient=True,
            # Only the reporter writes while this is on the screen.
            redirect_stdout=False,
            redirect_stderr=False,
            expand=True,
        )
        self._rows: dict[str, TaskID] = {}
        self._done: dict[str, int] = {}
        self._ahead: dict[str, int] = {}

    def take(self, event: events.Event) -> None:
        """Show what an event says of its host."""
        match event:
            case events.RunStart():
                for host in event.hosts:
                    self._row(host)
            case events.HostStart():
                self._done[event.host], self._ahead[event.host] = 0, event.tasks
                self._show(event.host, event.play)
            case events.TaskStart():
                self._show(event.host, event.task or event.module, under_way=1)
            case events.Task():
                self._done[event.host] = self._done.get(event.host, 0) + 1
                self._show(event.host, event.task or event.module)
            case events.Progress():
                self._long_step(event)
            case events.HostEnd():
                self._show(event.host, event.play, state=event.state, seconds=event.seconds)

    def get_renderables(self) -> Iterable[RenderableType]:
        width = max(20, self._screen.width - MARGIN)
        room = max(1, self._screen.height - KEPT_FREE)
        rows = self.tasks
        shown = rows
        if len(rows) > room:
            shown = [row for row in rows if row.started and not row.fields["state"]][:room]
        yield Constrain(self.make_tasks_table(shown), width)
        if len(shown) < len(rows):
            ended = sum(bool(row.fields["state"]) for row in rows)
            summary = f"{ended} of {words.count(len(rows), 'node')} done, {len(shown)} shown"
            yield Constrain(Text(summary, "dim", no_wrap=True, overflow="ellipsis"), width)

    def _row(self, host: str) -> TaskID:
        if host not in self._rows:
            fields: dict[str, Any] = {**CLEARED, "host": words.printable(host), "place": "", "since": None}
            self._rows[host] = self.add_task("waiting", start=False, **fields)
        return self._rows[host]

    def _show(self, host: str, what: str, *, under_way: int = 0, **fields: Any) -> None:
        done, ahead = self._done.get(host, 0), self._ahead.get(host, 0)
        place = f"{min(done + under_way, ahead)}/{ahead}" if ahead else ""
        shown: dict[str, Any] = {**CLEARED, "place": place, "since": self.get_time(), **fields}
        row = self._row(host)
        self.reset(row, total=max(ahead, 1), completed=done, description=words.printable(what))
        self.update(row, **shown)

    def _long_step(self, event: events.Progress) -> None:
        row = self._row(event.host)
        if event.total is None or event.unit == "s":
            self.update(row, quantity=words.progress(event))
        if event.total is None:
            return
        step = (event.task, event.unit)
        if self._tasks[row].fields["step"] != step:
            # A new step starts a new measurement of its rate; there is none for mere waiting.
            unit = "" if event.unit == "s" else event.unit
            self.reset(row)
            self.update(row, step=step, unit=unit)
        self.update(row, total=event.total, completed=event.done)
