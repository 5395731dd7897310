"""Where lines go: whole, in order, from any thread, whatever they hold and whoever stops reading."""

from __future__ import annotations

import os
import threading
from typing import TextIO


class Sink:
    """Writes whole lines to a stream and flushes each.

    A reader that goes away (`| head`) ends the output, not the run: half a deploy would be worse than a lost line.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()

    def write(self, text: str) -> None:
        """Write `text`, which ends with a newline, in one piece; what the stream can't encode is escaped."""
        encoding = self._stream.encoding or "utf-8"
        encodable = text.encode(encoding, "backslashreplace").decode(encoding)
        with self._lock:
            try:
                self._stream.write(encodable)
                self._stream.flush()
            except BrokenPipeError:
                self._abandon()

    def _abandon(self) -> None:
        # The interpreter flushes stdout once more when it ends: let that go nowhere too.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)
