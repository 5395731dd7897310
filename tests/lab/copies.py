"""A copy of the stand-in engine as the tests start, ask and stop it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any


class Copy:
    """One `vllm serve` on a free port; `log` is what it has printed."""

    def __init__(self, vllm: Path, argv: list[str], env: dict[str, str], log: Path, port: int | None) -> None:
        self.port = port or free_port()
        self._log = log
        where = ["--host", "127.0.0.1", "--port", str(self.port)]
        settings = {"SPARKOPS_LAB_START_SECONDS": "0", "SPARKOPS_LAB_TOKEN_RATE": "2000", **env}
        with log.open("wb") as out:
            self.process = subprocess.Popen(
                [vllm, "serve", *argv, *where], stdout=out, stderr=out, env={"PATH": os.environ["PATH"], **settings}
            )

    @property
    def log(self) -> str:
        return self._log.read_text()

    def wait(self) -> int:
        return self.process.wait(20)

    def ready(self) -> Copy:
        until(lambda: "Application startup complete." in self.log or self.process.poll() is not None)
        assert self.process.poll() is None, self.log
        return self

    def open(self, path: str, body: Any = None, key: str | None = None) -> Any:
        headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, headers)
        return urllib.request.urlopen(request, timeout=10)

    def get(self, path: str, body: Any = None, key: str | None = None) -> tuple[int, Any]:
        """Status and document."""
        try:
            with self.open(path, body, key) as answer:
                return answer.status, json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read() or b"null")

    def stream(self, path: str, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """The events; fails unless the stream ends well-formed."""
        with self.open(path, {**body, "stream": True, "stream_options": {"include_usage": True}}) as answer:
            lines = [line for raw in answer if (line := raw.decode().strip())]
        assert all(line.startswith("data: ") for line in lines)
        assert lines[-1] == "data: [DONE]"
        return iter([json.loads(line[6:]) for line in lines[:-1]])

    def metric(self, name: str) -> float:
        with self.open("/metrics") as answer:
            lines = answer.read().decode().splitlines()
        (line,) = [line for line in lines if line.startswith(f"vllm:{name}{{")]
        return float(line.split()[-1])


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


def until(true: Callable[[], bool], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"waited for {seconds} s"
        time.sleep(0.02)
