"""The engine as it runs: requests under way, tokens at a steady rate, counters."""

from __future__ import annotations

import os
import threading
import time
import zlib
from contextlib import contextmanager

from ..model_executor.models.interfaces import has_defect
from . import tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .loader import Loaded

DEFAULT_RATE = 200.0  # tokens a second, each request
SHORTEST_ANSWER = 48  # tokens, when the model may end by itself
ANSWER_SPREAD = 80
WEDGE_POLL = 0.05  # seconds


class Engine:
    """Serves a loaded model. `stopping` cuts all requests short; while `wedged` is set no request gets a token."""

    def __init__(self, loaded: Loaded) -> None:
        self.loaded = loaded
        self.rate = float(os.environ.get("SPARKOPS_LAB_TOKEN_RATE", DEFAULT_RATE))
        self.stopping = threading.Event()
        self.wedged = threading.Event()
        self.dead = threading.Event()
        self.running = 0
        self.resident_tokens = 0
        self.prompt_tokens = 0
        self.generated_tokens = 0
        self.finished: dict[str, int] = {"stop": 0, "length": 0, "abort": 0, "error": 0, "repetition": 0}
        # Of each histogram: how often, and the sum of seconds.
        self.seconds = {"time_to_first_token_seconds": (0, 0.0), "e2e_request_latency_seconds": (0, 0.0)}
        self.drafts = 0
        self.accepted_tokens = 0
        self._changed = threading.Condition()

    @contextmanager
    def request(self, answer: Answer) -> Iterator[Answer]:
        """An answer under way, from its prompt to the last byte written."""
        with self._changed:
            self.running += 1
            self.prompt_tokens += answer.prompt_tokens
            self.resident_tokens += answer.prompt_tokens
        try:
            yield answer
        finally:
            with self._changed:
                self.running -= 1
                self.resident_tokens -= answer.prompt_tokens + answer.completion_tokens
                self.finished[answer.finish_reason or "abort"] += 1
                self._changed.notify_all()

    def count_token(self, index: int) -> None:
        """One more token: the answer's `index`th. With a draft, a step of it accepts all proposals but one."""
        accepted = self.loaded.draft_tokens - 1 if self.loaded.draft_sound else 0
        with self._changed:
            self.generated_tokens += 1
            self.resident_tokens += 1
            if self.loaded.draft_tokens and index % (1 + accepted) == 0:
                self.drafts += 1
                self.accepted_tokens += accepted

    def observe(self, name: str, seconds: float) -> None:
        """Add to a histogram."""
        with self._changed:
            count, total = self.seconds[name]
            self.seconds[name] = (count + 1, total + seconds)

    def die(self) -> None:
        """The engine's process is gone: no more tokens, and /health says so."""
        self.dead.set()
        self.stopping.set()

    def drain(self, seconds: float) -> None:
        """Wait until no request is under way, but no longer than `seconds`."""
        with self._changed:
            self._changed.wait_for(lambda: not self.running, seconds)


class Answer:
    """The answer to one prompt: iterate for its tokens' texts; `finish_reason` is set with the last one."""

    def __init__(self, engine: Engine, prompt: list[int], *, limit: int, ignore_eos: bool) -> None:
        self._engine = engine
        self._seed = zlib.crc32(repr(prompt).encode())
        natural = SHORTEST_ANSWER + self._seed % ANSWER_SPREAD
        self._length = limit if ignore_eos else min(limit, natural)
        self._full = "length" if self._length == limit else "stop"
        self.prompt_tokens = len(prompt)
        self.completion_tokens = 0
        self.finish_reason: str | None = None

    def __iter__(self) -> Iterator[str]:
        start = time.monotonic()
        for index in range(self._length):
            if self._cut(start + (index + 1) / self._engine.rate):
                self.finish_reason = "abort"
                return
            self._engine.count_token(index)
            self.completion_tokens += 1
            if index == 0:
                self._engine.observe("time_to_first_token_seconds", time.monotonic() - start)
            if index == self._length - 1:
                self.finish_reason = self._full
                self._engine.observe("e2e_request_latency_seconds", time.monotonic() - start)
            yield tokens.GARBAGE if has_defect("garbage") else tokens.word(self._seed, index)

    def _cut(self, due: float) -> bool:
        """Wait until `due` (monotonic seconds) and, when wedged, beyond. True: the engine stops."""
        engine = self._engine
        stopped = engine.stopping.wait(max(0.0, due - time.monotonic()))
        while engine.wedged.is_set() and not stopped:
            stopped = engine.stopping.wait(WEDGE_POLL)
        return stopped
