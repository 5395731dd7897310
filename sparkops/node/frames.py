"""Messages on the one channel between controller and node: a length, a JSON object, and raw bytes when it says so.

A frame is a 4-byte big-endian length, that many bytes of JSON (UTF-8), then `blob` raw bytes if the object has that
key. Both ends use this file.
"""

from __future__ import annotations

import _thread
import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LIMIT = 256 * 1024 * 1024
# Seconds that a posted frame may wait for company: each packet of SSH costs both ends more than a quick task.
HOLD = 0.02


class Closed(Exception):
    """The other end has gone."""


class BadFrame(Exception):
    """The bytes are no frame: something else is talking on the channel."""


def pack(message: dict[str, Any], blob: bytes = b"") -> bytes:
    """One frame. Surrogates stand for the bytes of file names that are not UTF-8 and survive the trip."""
    if blob:
        message = dict(message, blob=len(blob))
    text = json.dumps(message, ensure_ascii=True, separators=(",", ":")).encode()
    return len(text).to_bytes(4, "big") + text + blob


class Parser:
    """Turns bytes, in whatever pieces they come, into messages.

    >>> parser = Parser(); parser.feed(pack({"op": "close"})); parser.next()
    ({'op': 'close'}, b'')
    """

    def __init__(self) -> None:
        self._buffer = bytearray()
        # A message whose blob is still coming, and where that begins.
        self._message: dict[str, Any] | None = None
        self._start = 0

    def feed(self, data: bytes) -> None:
        """Add received bytes."""
        self._buffer += data

    def __len__(self) -> int:
        return len(self._buffer)

    def next(self) -> tuple[dict[str, Any], bytes] | None:
        """The next whole message and its blob, or None until more bytes come. Raises BadFrame."""
        if self._message is None:
            self._message = self._head()
        message = self._message
        if message is None:
            return None
        end = self._start + message.get("blob", 0)
        if len(self._buffer) < end:
            return None
        blob = bytes(memoryview(self._buffer)[self._start : end])
        del self._buffer[:end]
        self._message = None
        return message, blob

    def _head(self) -> dict[str, Any] | None:
        buffer = self._buffer
        if len(buffer) < 4:
            return None
        end = 4 + int.from_bytes(buffer[:4], "big")
        if end > LIMIT:
            raise BadFrame(bytes(buffer[:200]).decode("utf-8", "replace"))
        if len(buffer) < end:
            return None
        try:
            message: dict[str, Any] = json.loads(bytes(buffer[4:end]))
        except ValueError:
            raise BadFrame(bytes(buffer[:200]).decode("utf-8", "replace")) from None
        self._start = end
        return message


class Link:
    """The node's end: reads frames from one descriptor, writes them to another, and knows when the peer has gone."""

    def __init__(self, source: int, sink: int) -> None:
        self.source = source
        self.sink = sink
        self.closed = False
        # Seconds of silence after which the peer counts as gone: a cable that is pulled closes nothing.
        self.silence: float | None = None
        self._heard = 0.0
        self._parser = Parser()
        self._aside: list[tuple[dict[str, Any], bytes]] = []
        self._posted = b""
        self._writing = _thread.allocate_lock()

    def feed(self, data: bytes) -> None:
        """Take in bytes that were read before now."""
        import time

        self._heard = time.monotonic()
        self._parser.feed(data)

    def send(self, message: dict[str, Any], blob: bytes = b"") -> None:
        """Write one frame whole. Raises Closed."""
        self.write(pack(message, blob))

    def post(self, message: dict[str, Any]) -> None:
        """Write one frame with what is sent next, or in a moment when nothing is."""
        with self._writing:
            first = not self._posted
            self._posted += pack(message)
        if first:
            try:
                _thread.start_new_thread(self._deliver, ())
            except RuntimeError:
                # No more threads for this user.
                self.write(b"")

    def _deliver(self) -> None:
        import time

        time.sleep(HOLD)
        try:
            self.write(b"")
        except Closed:
            # The next check says so.
            return

    def write(self, data: bytes) -> None:
        """Write bytes whole, after what was posted. Raises Closed."""
        with self._writing:
            left = memoryview(self._posted + data)
            self._posted = b""
            try:
                while left:
                    left = left[os.write(self.sink, left) :]
            except BrokenPipeError:
                self.closed = True
                raise Closed from None

    def receive(self) -> tuple[dict[str, Any], bytes]:
        """Wait for the next frame. Raises Closed at the end."""
        import select

        while (found := self.poll()) is None:
            if self.closed:
                raise Closed
            if select.select([self.source], [], [], self.silence)[0]:
                self.fill()
            else:
                self.closed = True
        return found

    def piece(self) -> bytes:
        """Wait for the next piece of a file, b"" when it ends early. Frames that come between wait for their turn."""
        passed = []
        try:
            while (found := self.receive())[0].get("op") != "piece":
                passed.append(found)
        finally:
            self._aside = passed + self._aside
        return found[1]

    def poll(self) -> tuple[dict[str, Any], bytes] | None:
        """The next frame if it is here already. A ping only says that the peer is there."""
        if self._aside:
            return self._aside.pop(0)
        while (found := self._parser.next()) is not None and found[0].get("op") == "ping":
            pass
        return found

    def fill(self) -> None:
        """Wait for bytes and take them in; an end sets `closed`."""
        data = os.read(self.source, 262144)
        self.closed = not data
        self.feed(data)

    def check(self) -> None:
        """Take in what has come, without waiting. Raises Closed when the peer has gone."""
        import select

        while not self.closed and len(self._parser) < LIMIT and select.select([self.source], [], [], 0)[0]:
            self.fill()
        if self.closed or self._silent():
            raise Closed

    def _silent(self) -> bool:
        import time

        return self.silence is not None and time.monotonic() - self._heard > self.silence
