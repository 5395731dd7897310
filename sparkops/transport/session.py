"""A session: one open channel to the executor on one node."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any, Protocol

from sparkops.errors import ConnectionLost
from sparkops.node.boot import NEED
from sparkops.node.bundle import Start
from sparkops.node.frames import BadFrame, Parser, pack


class Channel(Protocol):
    """Bytes to and from a program on a node."""

    def write(self, data: bytes) -> None:
        """Send all of `data`. Raises ConnectionLost."""

    def read(self) -> bytes:
        """What has come, at least a byte; b"" at the end."""

    def last_words(self) -> str:
        """What the program said on stderr so far, and how it ended."""

    def close(self) -> None:
        """Hang up at once. Safe from any thread, and more than once."""


class Session:
    """Frames over a channel."""

    def __init__(self, channel: Channel, preamble: bytes | Start, host: str) -> None:
        self._channel = channel
        self._parser = Parser()
        self._host = host
        # Goes out together with the first frames: their answer is the first thing that is waited for.
        self._head = preamble.head if isinstance(preamble, Start) else preamble
        # Has the executor's sources, for a node that has no byte-code of them; None once it has said something.
        self._start = preamble if isinstance(preamble, Start) else None
        self._unsent = b""
        self._writing = threading.Lock()
        self._begun = False
        # How often the controller stood still for this node: once for each window that it sent.
        self.waits = 0

    def send(self, message: dict[str, Any], blob: bytes = b"") -> None:
        """Queue a frame; it leaves with the next flush or receive."""
        self._unsent += pack(message, blob)

    def flush(self) -> None:
        """Send what is queued. Raises ConnectionLost."""
        data, self._unsent = self._unsent, b""
        if not self._head and self._start is not None:
            # A node that asks for sources takes what comes next for these.
            self._take_in()
        if self._head:
            size = b"" if self._start is None else b"%012d" % len(data)
            data, self._head = self._head + size + data, b""
        self._write(data)
        # A ping would come in between a node that asks for sources and these.
        self._begun = self._start is None

    def _write(self, data: bytes) -> None:
        with self._writing:
            self._channel.write(data)

    def ping(self) -> None:
        """Tell the node that the controller is there. From any thread; a connection that is gone is found elsewhere."""
        # Somebody who is writing tells the node enough.
        if not self._writing.acquire(blocking=False):
            return
        try:
            if self._begun:
                with suppress(ConnectionLost):
                    self._channel.write(pack({"op": "ping"}))
        finally:
            self._writing.release()

    def receive(self) -> dict[str, Any]:
        """The next frame from the node. Raises ConnectionLost."""
        if self._unsent:
            self.flush()
        try:
            while (found := self._parser.next()) is None:
                self._take_in()
        except BadFrame as bad:
            raise ConnectionLost(
                f"something else than sparkops answered: {bad}",
                where=self._host,
                hint="does the login shell's start-up file print text? It must be silent when not interactive",
            ) from None
        return found[0]

    def _take_in(self) -> None:
        data = self._channel.read()
        if not data:
            raise ConnectionLost(f"the connection ended early{_quoted(self._channel.last_words())}", where=self._host)
        self._parser.feed(data if self._start is None else self._first(data))

    def _first(self, data: bytes) -> bytes:
        """What comes first: the node may ask for the sources."""
        start, self._start = self._start, None
        if start is not None and data[:1] == NEED:
            self._write(start.rest)
            data = data[1:]
        self._begun = True
        return data

    def close(self) -> None:
        """Say goodbye and hang up."""
        self._channel.close()


def _quoted(words: str) -> str:
    return f": {words}" if words else ""
