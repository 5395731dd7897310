"""A stand-in hub, which fails in all the ways that hubs do when it is told to.

Standard library alone: as a program (FOLDER, PORT, and seconds after each 64 KiB) it serves all, on a node of the lab.
It prints one line a request: its path, the part, and whether a token came with it.
"""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

SHA = "c0ffee"


class Server(ThreadingHTTPServer):
    """A hub with one model. Every request is noted; `spoil` may answer one by itself (True) before it is served."""

    daemon_threads = True

    def __init__(self, folder: Path, address: tuple[str, int] = ("127.0.0.1", 0)) -> None:
        super().__init__(address, Handler)
        self.folder = folder
        self.seen: list[tuple[str, str | None, str | None]] = []
        self.sent = 0
        self.spoil: Callable[[Handler, int], bool] = lambda handler, at: False
        self.api = True
        self.ranges = True
        self.etag = '"1"'
        self.delay = 0.0  # seconds after each 64 KiB of a part

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    """One request of Hugging Face's protocol."""

    server: Server
    short: int | None = None  # bytes after which the body ends, or rests for `rest` seconds
    rest = 0.0

    def do_GET(self) -> None:
        server = self.server
        server.seen.append((self.path, self.headers.get("Range"), self.headers.get("Authorization")))
        try:
            if server.spoil(self, len(server.seen)):
                return
            if self.path.startswith("/api/models/org/model/revision/"):
                self.listing()
            elif found := re.fullmatch(r"/org/model/resolve/(?:c0ffee|main)/(.+)", self.path):
                self.file(server.folder / found[1])
            else:
                self.say(404)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def listing(self) -> None:
        names = [{"rfilename": path.name} for path in sorted(self.server.folder.iterdir())]
        body = json.dumps({"sha": SHA, "siblings": names}).encode()
        self.say(200 if self.server.api else 404, body)

    def file(self, path: Path) -> None:
        if path.is_file():
            self.some(path)
        else:
            self.say(404)

    def some(self, path: Path) -> None:
        size = path.stat().st_size
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        with path.open("rb") as file:
            if not asked or not self.server.ranges:
                self.head(200, size, {"ETag": self.server.etag})
                while self.short != 0 and (piece := file.read(1 << 16)):
                    self.write(piece)
                return
            start, last = int(asked[1]), min(int(asked[2]), size - 1)
            if start >= size:
                self.say(416)
                return
            self.head(
                206, last + 1 - start, {"Content-Range": f"bytes {start}-{last}/{size}", "ETag": self.server.etag}
            )
            file.seek(start)
            left = last + 1 - start
            while left and self.short != 0:
                piece = file.read(min(left, 1 << 16))
                self.write(piece)
                left -= len(piece)
                time.sleep(self.server.delay)

    def say(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        self.head(status, len(body), headers or {})
        self.write(body)

    def head(self, status: int, length: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(length), **headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def write(self, data: bytes) -> None:
        data = data[: self.short]
        self.wfile.write(data)
        self.wfile.flush()
        self.server.sent += len(data)
        if self.short is not None:
            self.short -= len(data)
        time.sleep(self.rest if self.short == 0 else 0)

    def log_message(self, *_: Any) -> None:
        """Nothing is logged."""


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    """A hub whose one model, org/model, has the files of `folder`."""
    server = Server(folder)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def busy(handler: Handler) -> bool:
    handler.say(429, headers={"Retry-After": "0"})
    return True


def broken(handler: Handler) -> bool:
    handler.say(503)
    return True


def cut(handler: Handler) -> bool:
    handler.short = 10
    return False


def hung_up(handler: Handler) -> bool:
    handler.close_connection = True
    return True


def stalled(handler: Handler) -> bool:
    handler.short, handler.rest = 10, 1.0
    return False


def main() -> None:
    """Serve until it is killed."""
    server = Server(Path(sys.argv[1]), ("0.0.0.0", int(sys.argv[2])))
    server.delay = float(sys.argv[3])

    def told(handler: Handler, at: int) -> bool:
        path, span, token = server.seen[at - 1]
        print(path, span, bool(token), flush=True)
        return False

    server.spoil = told
    server.serve_forever()


if __name__ == "__main__":
    main()
