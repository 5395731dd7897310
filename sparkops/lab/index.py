"""The lab's server: wheels as a simple index (PEP 503), and a flat Debian repository. Standard library only.

    http://ADDRESS:PORT/simple/    wheels, with their sha256
    http://ADDRESS:PORT/debs/      Packages, Release and the .deb files (absent when there are none)

Run as a process of its own: python -m sparkops.lab.index ADDRESS PORT WHEELS [DEBS]
"""

from __future__ import annotations

import hashlib
import html
import re
import shutil
import sys
from functools import lru_cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit


def normalized(name: str) -> str:
    """A project's name as PEP 503 writes it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def projects(wheels: Path) -> dict[str, list[Path]]:
    """The wheels of a folder by normalized project name."""
    found: dict[str, list[Path]] = {}
    for wheel in sorted(wheels.glob("*.whl")):
        found.setdefault(normalized(wheel.name.split("-")[0]), []).append(wheel)
    return found


def digest(path: Path) -> str:
    """The sha256 of a file, in hex; remembered as long as the file stays as it is."""
    status = path.stat()
    return _digest(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=1024)
def _digest(path: Path, mtime_ns: int, size: int) -> str:  # noqa: ARG001  (they are the cache's key)
    sha256 = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            sha256.update(piece)
    return sha256.hexdigest()


def page(title: str, links: list[tuple[str, str]]) -> bytes:
    """An HTML page of links: (text, address)."""
    anchors = "".join(f'<a href="{html.escape(address)}">{html.escape(text)}</a><br>\n' for text, address in links)
    head = f"<!DOCTYPE html>\n<html><head><title>{html.escape(title)}</title></head>"
    return f"{head}<body>\n{anchors}</body></html>\n".encode()


def answer(path: str, wheels: Path, debs: Path | None) -> bytes | Path | None:
    """What is found under a request's path: a page, a file, or None."""
    words = [unquote(word) for word in urlsplit(path).path.split("/") if word]
    if words == ["simple"]:
        return page("simple index", [(name, f"/simple/{quote(name)}/") for name in projects(wheels)])
    if len(words) == 2 and words[0] == "simple":
        found = projects(wheels).get(normalized(words[1]), [])
        links = [(wheel.name, f"/wheels/{quote(wheel.name)}#sha256={digest(wheel)}") for wheel in found]
        return page(words[1], links) if links else None
    folders = {"wheels": wheels, "debs": debs}
    if len(words) > 1 and (folder := folders.get(words[0])):
        name = [word for word in words[1:] if word != "."]
        if len(name) == 1 and ".." not in name and "/" not in name[0] and (folder / name[0]).is_file():
            return folder / name[0]
    return None


class Index(ThreadingHTTPServer):
    """The server. `address` with port 0: any free one, see `server_port`."""

    daemon_threads = True
    # A node that comes back after a crash finds its port free.
    allow_reuse_address = True

    def __init__(self, address: tuple[str, int], wheels: Path, debs: Path | None = None) -> None:
        super().__init__(address, Handler)
        self.wheels = wheels
        self.debs = debs

    @property
    def url(self) -> str:
        """The address of the simple index, as `index_url` takes it."""
        host, port = self.server_address[:2]
        return f"http://{host!s}:{port}/simple/"


class Handler(BaseHTTPRequestHandler):
    """One connection of a client; GET and HEAD."""

    server: Index
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer a GET."""
        self._answer(body=True)

    def do_HEAD(self) -> None:
        """Answer a HEAD."""
        self._answer(body=False)

    def _answer(self, *, body: bool) -> None:
        found = answer(self.path, self.server.wheels, self.server.debs)
        if found is None:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        self.send_response(HTTPStatus.OK)
        if isinstance(found, bytes):
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(found)))
            self.end_headers()
            if body:
                self.wfile.write(found)
            return
        with found.open("rb") as file:
            self.send_header("Content-Type", "application/octet-stream")
            self.send_header("Content-Length", str(found.stat().st_size))
            self.end_headers()
            if body:
                shutil.copyfileobj(file, self.wfile, 1 << 20)


def main(argv: list[str]) -> None:
    """Serve until killed; argv as the module's docstring has it."""
    address, port, wheels, *debs = argv
    with Index((address, int(port)), Path(wheels), Path(debs[0]) if debs else None) as server:
        server.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1:])
