"""Lines of several hosts as one stream, by the time that each begins with."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple


class Entry(NamedTuple):
    """A line; sorts by its time (s since the epoch), then by host, then as it came."""

    stamp: float
    host: str
    number: int
    line: str
    came: float


class Merger:
    """Holds lines back for `hold` seconds, since those of another host may be older and still on their way."""

    def __init__(self, hold: float) -> None:
        self._hold = hold
        self._entries: list[Entry] = []
        self._stamps: dict[str, float] = {}
        self._number = 0

    def add(self, host: str, lines: Iterable[str], now: float) -> None:
        """Take in lines that came at `now`; one without a time belongs to the one before it."""
        for line in lines:
            # A node's own order stays, also where its clock was set back.
            last = self._stamps.get(host, 0.0)
            self._stamps[host] = max(last, stamp(line) or last)
            self._number += 1
            self._entries.append(Entry(self._stamps[host], host, self._number, line, now))

    def due(self, now: float) -> list[tuple[str, str]]:
        """(host, line) of those that have waited long enough, with all that are older."""
        waited = [entry.stamp for entry in self._entries if entry.came <= now - self._hold]
        return self._take(max(waited)) if waited else []

    def rest(self) -> list[tuple[str, str]]:
        """All that are left."""
        return self._take(float("inf"))

    def _take(self, until: float) -> list[tuple[str, str]]:
        taken = sorted(entry for entry in self._entries if entry.stamp <= until)
        self._entries = [entry for entry in self._entries if entry.stamp > until]
        return [(entry.host, entry.line) for entry in taken]


def stamp(line: str) -> float | None:
    """The time of a line of journalctl -o short-iso-precise; None where there is none. Zones may differ."""
    try:
        return datetime.strptime(line.partition(" ")[0], "%Y-%m-%dT%H:%M:%S.%f%z").timestamp()
    except ValueError:
        return None
