"""A hub that speaks Hugging Face's protocol as far as its client needs it, and misbehaves when it is told to.

    python tests/e2e/hub.py ADDRESS PORT FOLDER

Serves FOLDER/models/ORG/NAME. Each request for a file's bytes is a line of FOLDER/log: [name, first byte, bytes sent].
FOLDER/faults.json, {name: [fault, ...]}: what happens to the next requests for that file's bytes, one each:
429 (asked to wait), 500, cut (the connection ends half-way), stall (half-way nothing more comes), short (fewer bytes
are promised and sent than there are), slow (a MiB in a third of a second), etag (the file is another one than was
listed, and its ETag says so).
"""

from __future__ import annotations

import hashlib
import json
import sys
import threading
import time
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

PIECE = 1 << 20
LFS = ".safetensors"


@cache
def sha256(path: Path, stamp: int) -> str:
    """stamp: its mtime, for the cache."""
    del stamp
    seen = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            seen.update(piece)
    return seen.hexdigest()


def blob(path: Path) -> str:
    data = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class Hub(ThreadingHTTPServer):
    """The server."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, address: tuple[str, int], folder: Path) -> None:
        super().__init__(address, Handler)
        self.folder = folder
        self.lock = threading.Lock()

    def fault(self, name: str) -> str:
        """What happens to this request; it is used up."""
        file = self.folder / "faults.json"
        with self.lock:
            faults = json.loads(file.read_text()) if file.exists() else {}
            found = faults.get(name, [])
            fault = str(found.pop(0)) if found else ""
            if fault:
                # Tests read it meanwhile.
                beside = file.with_name("faults.new")
                beside.write_text(json.dumps(faults))
                beside.replace(file)
            return fault

    def log(self, *entry: Any) -> None:
        with self.lock, (self.folder / "log").open("a") as log:
            log.write(json.dumps(entry) + "\n")


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        """Nothing is printed."""

    def do_HEAD(self) -> None:
        self.answer(False)

    def do_GET(self) -> None:
        self.answer(True)

    def answer(self, body: bool) -> None:
        words = self.path.partition("?")[0].strip("/").split("/")
        token = self.server.folder / "token"
        if token.exists() and words[0] != "cdn" and self.headers.get("Authorization") != f"Bearer {token.read_text()}":
            self.json({"error": "Access to model is restricted"}, 401)
        elif words[:1] == ["api"] and (self.server.folder / "html").exists():
            self.html()
        elif words[:2] == ["api", "models"] and len(words) >= 4:
            self.about(words)
        elif len(words) >= 5 and words[2] == "resolve":
            self.resolve(words, body)
        elif words[0] == "cdn":
            path = self.server.folder / "models" / "/".join(words[1:])
            self.bytes(path, body, {"ETag": f'"{sha256(path, path.stat().st_mtime_ns)}"'})
        else:
            self.json({"error": "Repository not found"}, 404)

    def json(self, document: Any, status: int = 200) -> None:
        data = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data)

    def html(self) -> None:
        """What a portal in between answers, whatever it is asked for."""
        data = b"<html><body>Sign in to this network</body></html>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data)

    def commit(self) -> str:
        return (self.server.folder / "commit").read_text().strip()

    def about(self, words: list[str]) -> None:
        folder = self.server.folder / "models" / words[2] / words[3]
        revision = words[5] if len(words) > 5 else "main"
        if not folder.is_dir() or revision not in ("main", self.commit()):
            self.json({"error": "Repository not found"}, 404)
            return
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        about = []
        for path in files:
            one: dict[str, Any] = {"size": path.stat().st_size, "oid": blob(path) if path.suffix != LFS else "0" * 40}
            if path.suffix == LFS:
                one["lfs"] = {"oid": sha256(path, path.stat().st_mtime_ns), "size": one["size"], "pointerSize": 134}
            about.append({"type": "file", "path": path.relative_to(folder).as_posix(), **one})
        if words[4:5] == ["tree"]:
            self.json(about)
            return
        siblings = [
            {
                "rfilename": one["path"], "size": one["size"], "blobId": one["oid"],
                **({"lfs": {**one["lfs"], "sha256": one["lfs"]["oid"]}} if "lfs" in one else {}),
            }
            for one in about
        ]  # fmt: skip
        name = f"{words[2]}/{words[3]}"
        self.json({"_id": "1", "id": name, "modelId": name, "sha": self.commit(), "private": False, "tags": [],
                   "downloads": 0, "likes": 0, "siblings": siblings})  # fmt: skip

    def resolve(self, words: list[str], body: bool) -> None:
        path = self.server.folder / "models" / words[0] / words[1] / "/".join(words[4:])
        if not path.is_file() or words[3] not in ("main", self.commit()):
            self.json({"error": "Entry not found"}, 404)
            return
        if path.suffix == LFS:
            # As the real one: large files are elsewhere (the same port with a 1 behind it).
            self.send_response(302)
            self.send_header(
                "Location", f"http://{self.headers['Host']}1/cdn/{words[0]}/{words[1]}/{'/'.join(words[4:])}"
            )
            self.send_header("X-Repo-Commit", self.commit())
            self.send_header("X-Linked-Etag", f'"{sha256(path, path.stat().st_mtime_ns)}"')
            self.send_header("X-Linked-Size", str(path.stat().st_size))
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.bytes(path, body, {"X-Repo-Commit": self.commit(), "ETag": f'"{blob(path)}"'})

    def bytes(self, path: Path, body: bool, headers: dict[str, str] | None = None) -> None:
        size = path.stat().st_size
        wanted = self.headers.get("Range", "")
        begin, _, stop = wanted.removeprefix("bytes=").partition("-")
        first = int(begin or 0)
        fault = self.server.fault(path.name) if body else ""
        if fault.isdigit():
            self.json({"error": "later"}, int(fault))
            return
        last = size // 2 if fault == "short" else min(int(stop) + 1, size) if stop else size
        self.send_response(206 if wanted else 200)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(max(last - first, 0)))
        if wanted:
            self.send_header("Content-Range", f"bytes {first}-{last - 1}/{size}")
        for name, value in (headers or {}).items():
            self.send_header(name, value[::-1] if (name, fault) == ("ETag", "etag") else value)
        self.end_headers()
        sent = self.send(path, first, (first + last) // 2 if fault in ("cut", "stall") else last, fault) if body else 0
        if body:
            self.server.log(path.name, first, sent)
        if fault == "stall":
            time.sleep(600)
        if fault in ("cut", "stall"):
            self.close_connection = True

    def send(self, path: Path, first: int, last: int, fault: str) -> int:
        sent = 0
        with path.open("rb") as file:
            file.seek(first)
            while sent < last - first:
                piece = file.read(min(PIECE, last - first - sent))
                if fault == "slow":
                    time.sleep(0.3)
                if fault == "etag":
                    piece = bytes(len(piece))
                try:
                    self.wfile.write(piece)
                except OSError:
                    break
                sent += len(piece)
        return sent


if __name__ == "__main__":
    where, port, top = sys.argv[1:]
    elsewhere = Hub((where, int(port + "1")), Path(top))
    threading.Thread(target=elsewhere.serve_forever, daemon=True).start()
    Hub((where, int(port)), Path(top)).serve_forever()
