"""How fast a served copy generates: streamed greedy completions against the clock, as the published recipes measured.

A prompt is an array of token ids, so it is as long as asked for, and begins with other tokens each time, so that no
cached prefix shortens it. Tokens are counted by `usage`: a streamed piece may hold several.
"""

from __future__ import annotations

import json
import os

from sparkops.node.serving_probe import QUICK, NotYet, Wrong, expect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from sparkops.node.api import Node
    from sparkops.node.serving_probe import Server

# Characters that the engine is given to tokenize at a time: few enough for any max_model_len.
PIECE = 2000
PAUSE = 0.1
COMPLETIONS = "/v1/completions"
# Of a measurement, see `figures`.
FIGURES = ("decode_tok_s", "total_tok_s", "prefill_tok_s", "ttft_s")


class Stream:
    """One completion. sent, first, ended: seconds on the monotonic clock when it was asked for, when its first piece
    came, and its last. moved: when anything came.
    """

    def __init__(self, server: Server, body: dict[str, Any], patience: float) -> None:
        import threading
        import time

        self.server = server
        self.body = body
        self.clock = time.monotonic
        self.sent = self.moved = self.clock()
        self.first = self.ended = 0.0
        self.usage: dict[str, Any] = {}
        self.refusal: tuple[int, Any] | None = None
        self.error = ""
        # Longer than the one who waits for all streams has patience.
        self._connection = server.connection(patience + 10)
        self._socket: Any = None
        self._closed = False
        self.thread = threading.Thread(target=self._read, daemon=True)

    def _read(self) -> None:
        from http.client import HTTPException

        try:
            self._connection.connect()
            self._socket = self._connection.sock
            if self._closed:
                return
            self.sent = self.clock()
            response = self.server.send(self._connection, COMPLETIONS, self.body)
            if response.status != 200:
                self.refusal = response.status, _document(response.read())
                return
            for line in iter(response.readline, b""):
                if self._take(line.strip()):
                    self.ended = self.clock()
                    return
            self.error = "the stream ended without its end"
        except (OSError, HTTPException, ValueError) as error:
            self.error = getattr(error, "strerror", None) or str(error) or type(error).__name__
        finally:
            self._connection.close()

    def _take(self, line: bytes) -> bool:
        """A line of the stream; True for the last."""
        if not line.startswith(b"data: "):
            return False
        now = self.clock()
        if line == b"data: [DONE]":
            return True
        said = json.loads(line[6:])
        if said.get("error"):
            self.error = f"{COMPLETIONS}: {str(said['error'])[:200]}"
        self.usage = said.get("usage") or self.usage
        if said.get("choices"):
            self.moved = now
            self.first = self.first or now
        return False

    def close(self) -> None:
        """End it; a server that still generates for it stops."""
        import socket

        self._closed = True
        try:
            if self._socket is not None:
                self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            return

    def check(self) -> None:
        """Raises NotYet, Wrong unless it ended whole: a server that is stopped ends streams early and well-formed."""
        if self.refusal:
            expect(self.refusal, COMPLETIONS)
        if self.error:
            raise NotYet(f"{COMPLETIONS}: {self.error}")
        wanted = {"prompt_tokens": len(self.body["prompt"]), "completion_tokens": self.body["max_tokens"]}
        came = {name: self.usage.get(name) for name in wanted}
        if came != wanted:
            told = ", ".join(f"{name} {came[name]} instead of {wanted[name]}" for name in wanted)
            raise NotYet(f"{COMPLETIONS}: the answer was cut short, or counted otherwise: {told}")


def _document(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return data.decode("utf-8", "replace")


def together(server: Server, bodies: list[dict[str, Any]], patience: float, node: Node) -> list[Stream]:
    """The completions, asked for at once and come to their ends. Raises NotYet, Wrong; none goes on then.

    patience: seconds in which one of them must get a token.
    """
    streams = [Stream(server, body, patience) for body in bodies]
    try:
        for one in streams:
            one.thread.start()
        while any(one.thread.is_alive() for one in streams):
            node.pause(PAUSE)
            now = streams[0].clock()
            # The others wait for one that failed: their figures would count for nothing.
            if any(one.refusal or one.error for one in streams):
                break
            if now - max(one.moved for one in streams) > patience:
                raise Wrong(f"no token came for {patience:g} s: it has stalled, or --patience is too short")
    finally:
        for one in streams:
            one.close()
    for one in sorted(streams, key=lambda one: not (one.refusal or one.error)):
        one.check()
    return streams


def body(model: str, prompt: list[int], tokens: int) -> dict[str, Any]:
    """What is asked: greedy, and of a fixed length."""
    return {
        **{"model": model, "prompt": prompt, "max_tokens": tokens, "temperature": 0, "ignore_eos": True},
        **{"stream": True, "stream_options": {"include_usage": True}},
    }


class Prompts:
    """Prompts of up to `longest` tokens: the source of Python's library, which is long and no repetition (a draft
    would guess that).
    """

    def __init__(self, server: Server, model: str, longest: int) -> None:
        self.server = server
        self.model = model
        self.ids: list[int] = []
        for piece in _text():
            if len(self.ids) >= longest:
                break
            self.ids += self.tokenized(piece)
        if not self.ids:
            raise Wrong("/tokenize: it gives no tokens for a text")
        self.ids *= -(-longest // len(self.ids))

    def get(self, length: int) -> list[int]:
        """One that begins as none before."""
        return (self.tokenized(f"# {os.urandom(8).hex()}\n") + self.ids)[:length]

    def tokenized(self, text: str) -> list[int]:
        """A text's token ids. Raises NotYet, Wrong."""
        asked = {"model": self.model, "prompt": text, "add_special_tokens": False}
        said = expect(self.server.ask("/tokenize", asked, QUICK), "/tokenize")
        ids = said.get("tokens") if isinstance(said, dict) else None
        if not isinstance(ids, list):
            raise Wrong("/tokenize: the answer has no tokens")
        return ids


def _text() -> Iterator[str]:
    folder = os.path.dirname(os.__file__)
    for name in sorted(os.listdir(folder)):
        if name.endswith(".py"):
            with open(os.path.join(folder, name), encoding="ascii", errors="ignore") as file:
                yield from iter(lambda: file.read(PIECE), "")


def figures(streams: list[Stream]) -> dict[str, float]:
    """A run's: decode_tok_s (of one stream, without its first token; several: the median), total_tok_s (all tokens
    generated, from the first request to the last end), prefill_tok_s (prompt tokens until the last stream's first
    token), ttft_s (to the first token; the median).
    """
    begun = min(one.sent for one in streams)

    def count(name: str) -> int:
        return sum(int(one.usage[name]) for one in streams)

    return {
        "decode_tok_s": median([(one.usage["completion_tokens"] - 1) / _span(one.first, one.ended) for one in streams]),
        "total_tok_s": count("completion_tokens") / _span(begun, max(one.ended for one in streams)),
        "prefill_tok_s": count("prompt_tokens") / _span(begun, max(one.first for one in streams)),
        "ttft_s": median([one.first - one.sent for one in streams]),
    }


def _span(begin: float, end: float) -> float:
    # An answer of one piece has no time between its first and its last.
    return max(end - begin, 1e-6)


def median(values: list[float]) -> float:
    """The middle one, or the mean of the two that are."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def summary(runs: list[dict[str, float]]) -> dict[str, dict[str, float]]:
    """{figure: {median, min, max}} of several runs."""

    def one(values: list[float]) -> dict[str, float]:
        return {name: round(of(values), 4) for name, of in SUMMED.items()}

    return {name: one([run[name] for run in runs]) for name in FIGURES}


SUMMED: dict[str, Callable[[list[float]], float]] = {"median": median, "min": min, "max": max}
