"""Questions to the person at the terminal; an answer that is waited for does not keep a run from being stopped."""

from __future__ import annotations

import io
import os
import select
import sys
import threading

# Seconds between two looks at whether the run has been stopped.
TURN = 0.2


class Prompt:
    """One question at a time, from any thread. `stop` ends the waiting."""

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop
        self._asking = threading.Lock()
        self._unread = b""
        self._go_on = False

    def ask(self, text: str) -> str:
        """The answer; "" at the end of the input, or when the run is stopped."""
        with self._asking:
            return self._answer(text)

    def step(self, host: str, task: str) -> bool:
        """Whether to do a task on a host (--step); `c` is yes to all that come."""
        with self._asking:
            if self._go_on:
                return True
            answer = self._answer(f"{host}: {task}? (N)o/(y)es/(c)ontinue: ").strip().lower()
            self._go_on = answer.startswith("c")
            return answer.startswith(("y", "c"))

    def _answer(self, text: str) -> str:
        if self._stop.is_set():
            return ""
        # Stdout may carry JSON.
        print(text, end="", file=sys.stderr, flush=True)
        try:
            place = sys.stdin.fileno()
        except io.UnsupportedOperation:
            return sys.stdin.readline().rstrip("\n")
        while b"\n" not in self._unread and not self._stop.is_set():
            if select.select([place], [], [], TURN)[0]:
                piece = os.read(place, 4096)
                if not piece:
                    break
                self._unread += piece
        line, _, self._unread = self._unread.partition(b"\n")
        return line.decode("utf-8", "replace")
