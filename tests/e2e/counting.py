"""Runs sparkops in this process and writes down how often it connected and stood still: counting.py OUT ARG..."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import paramiko

from sparkops.cli import run
from sparkops.cli.main import main
from sparkops.transport.session import Session

SESSIONS: list[Counted] = []
CHANNELS: list[str] = []


class Counted(Session):
    """A session whose channel counts each read that comes after something was written: a wait for the node."""

    def __init__(self, channel: Any, preamble: Any, host: str) -> None:
        self.host, self.turns = host, Turns(channel)
        super().__init__(self.turns, preamble, host)
        SESSIONS.append(self)


class Turns:
    """A Channel."""

    def __init__(self, channel: Any) -> None:
        self._channel = channel
        self._wrote = False
        self.count = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._channel, name)

    def write(self, data: bytes) -> None:
        self._wrote = True
        self._channel.write(data)

    def read(self) -> bytes:
        self.count += self._wrote
        self._wrote = False
        data: bytes = self._channel.read()
        return data


def count(out: Path, words: list[str]) -> None:
    """Run `words`; `out` gets {"sessions": {host: [waits, turns]}, "channels": [kind]}."""
    opened = paramiko.Transport.open_channel

    def open_channel(self: paramiko.Transport, kind: str, *rest: Any, **more: Any) -> Any:
        CHANNELS.append(kind)
        return opened(self, kind, *rest, **more)

    paramiko.Transport.open_channel = open_channel  # type: ignore[method-assign]
    run.Session = Counted  # type: ignore[attr-defined]
    try:
        main(words)
    finally:
        sessions = [[session.host, session.waits, session.turns.count] for session in SESSIONS]
        out.write_text(json.dumps({"sessions": sessions, "channels": CHANNELS}))


if __name__ == "__main__":
    count(Path(sys.argv[1]), sys.argv[2:])
