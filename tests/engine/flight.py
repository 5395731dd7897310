"""Keeps requests in flight at a server and says how each ended: python flight.py URL MODEL COUNT TOKENS

One JSON object a request on stdout. Every second one is streamed. A stream that was cut short is well-formed all the
same: what tells is completion_tokens.
"""

from __future__ import annotations

import json
import sys
import threading
import urllib.request
from typing import Any


def ask(url: str, model: str, number: int, limit: int) -> dict[str, Any]:
    """One request to its end: tokens, finish_reason, streamed; or error."""
    stream = number % 2 == 0
    body: dict[str, Any] = {"model": model, "prompt": f"Hello {number}", "max_tokens": limit, "temperature": 0}
    body |= {"ignore_eos": True, "stream": stream}
    if stream:
        body["stream_options"] = {"include_usage": True}
    request = urllib.request.Request(
        f"{url}/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    found: dict[str, Any] = {"streamed": stream, "tokens": None, "finish_reason": None}
    try:
        with urllib.request.urlopen(request, timeout=600) as answer:
            texts = [line[6:] for line in answer if line.startswith(b"data: ")] if stream else [answer.read()]
        for document in (json.loads(text) for text in texts if text.strip() != b"[DONE]"):
            if usage := document.get("usage"):
                found["tokens"] = usage["completion_tokens"]
            for choice in document["choices"]:
                found["finish_reason"] = choice["finish_reason"] or found["finish_reason"]
    except (OSError, ValueError) as error:
        found["error"] = f"{type(error).__name__}: {error}"
    return found


def main(url: str, model: str, count: str, limit: str) -> None:
    """All at once."""

    def one(number: int) -> None:
        print(json.dumps(ask(url, model, number, int(limit))), flush=True)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(int(count))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
