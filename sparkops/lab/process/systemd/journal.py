"""The journal of a node: a file of JSON lines for each unit."""

from __future__ import annotations

import json
import time
from datetime import datetime
from pathlib import Path
from threading import Lock
from typing import NamedTuple

ISO = {"short-iso": "seconds", "short-iso-precise": "microseconds"}


class Entry(NamedTuple):
    """A line of a journal; `time` in microseconds since 1970."""

    time: int
    identifier: str
    pid: int
    message: str


class Journal:
    """Writes and reads entries by unit."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lock = Lock()

    def file(self, unit: str) -> Path:
        """A unit's own file."""
        return self.folder / f"{unit}.jsonl"

    def units(self) -> list[str]:
        """The units that have ever written."""
        return [file.name.removesuffix(".jsonl") for file in self.folder.glob("*.jsonl")]

    def write(self, unit: str, identifier: str, pid: int, message: str) -> None:
        """Add an entry, stamped with the present time."""
        entry = Entry(time.time_ns() // 1000, identifier, pid, message)
        with self.lock, self.file(unit).open("a") as file:
            file.write(json.dumps(entry) + "\n")

    def read(self, units: list[str]) -> list[Entry]:
        """The entries of some units, oldest first."""
        entries = []
        for unit in units:
            if (file := self.file(unit)).exists():
                entries += [Entry(*json.loads(line)) for line in file.read_text().splitlines()]
        return sorted(entries, key=lambda entry: entry.time)


def show(entry: Entry, host: str, style: str) -> str:
    """An entry in one of journalctl's styles: short, short-iso, short-iso-precise, cat or json."""
    if style == "cat":
        return entry.message
    if style == "json":
        fields = {"__REALTIME_TIMESTAMP": str(entry.time), "_HOSTNAME": host, "SYSLOG_IDENTIFIER": entry.identifier}
        return json.dumps(fields | {"_PID": str(entry.pid), "MESSAGE": entry.message})
    moment = datetime.fromtimestamp(entry.time / 1e6).astimezone()
    stamp = moment.isoformat(timespec=ISO[style]) if style in ISO else moment.strftime("%b %d %H:%M:%S")
    return f"{stamp} {host} {entry.identifier}[{entry.pid}]: {entry.message}"
