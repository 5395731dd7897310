"""The preflight's table: gathers what each node's verdict says, and tells it once for all of them."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from sparkops.events import Emit, Event, HostStart, Preflight, Recap, RunStart, Task

VERDICT = "preflight_verdict"


class Gathered:
    """An Emit before another: with the first event behind the preflight's play comes the table."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._hosts: Sequence[str] = ()
        self._found: dict[str, Task] = {}
        # A play's hosts each have a thread.
        self._lock = threading.Lock()

    def __call__(self, event: Event) -> None:
        with self._lock:
            if isinstance(event, RunStart):
                self._hosts = event.hosts
            elif isinstance(event, Task) and event.module == VERDICT and "rows" in event.result:
                self._found[event.host] = event
            elif isinstance(event, Recap) or (isinstance(event, HostStart) and self._is_over(event)):
                self._tell()
        self._emit(event)

    def _is_over(self, event: HostStart) -> bool:
        return all(task.play != event.play for task in self._found.values())

    def _tell(self) -> None:
        from msgspec import convert, to_builtins

        from sparkops.serving.preflight import Row, together

        if self._found:
            found = {host: self._found[host].result["rows"] for host in self._hosts if host in self._found}
            shown = together({host: convert(rows, list[Row]) for host, rows in found.items()})
            self._found = {}
            self._emit(Preflight([{**to_builtins(one.row), "hosts": one.hosts} for one in shown]))
