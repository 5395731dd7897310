"""Counts a run's events for its recap, and knows the exit code."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from sparkops.events import STATES, Emit, Event, Handler, Recap, Task

# Of several reasons to fail, the first of these is the exit code (DESIGN §5).
PRECEDENCE = (130, 5, 2, 1, 4)
INCLUDE = "include_tasks"


class Tally:
    """Passes events on, one at a time, and counts them. As in Ansible, `ok` counts changed and ignored
    tasks too, and each file that a loop includes.
    """

    def __init__(self, emit: Emit, hosts: Iterable[str]) -> None:
        self._emit = emit
        self._lock = threading.Lock()
        self.counts: dict[str, dict[str, int]] = {host: dict.fromkeys(STATES, 0) for host in hosts}
        self.codes: set[int] = set()

    def __call__(self, event: Event) -> None:
        """Emit an event. Safe from any thread."""
        with self._lock:
            if isinstance(event, (Task, Handler)):
                counts = self.counts[event.host]
                counts[event.state] += 1
                if event.state in ("changed", "ignored"):
                    counts["ok"] += 1
                if event.state == "ignored" and event.result.get("changed"):
                    counts["changed"] += 1
                if event.module == INCLUDE and event.state == "ok":
                    counts["ok"] += max(0, sum("include" in one for one in event.result.get("results", ())) - 1)
            self._emit(event)

    def unreachable(self, host: str) -> None:
        """A host could not be reached."""
        with self._lock:
            self.counts[host]["unreachable"] += 1

    def exit_code(self, check_changes: bool = False) -> int:
        """0, or the most telling of what went wrong; 3 when asked whether a check would change something."""
        for code in PRECEDENCE:
            if code in self.codes:
                return code
        would = any(counts["changed"] or counts["unknown"] for counts in self.counts.values())
        return 3 if check_changes and would else 0

    def recap(self, exit_code: int) -> Recap:
        """The last event."""
        return Recap(self.counts, exit_code)
