"""A simple index on loopback, and wheels made on the spot."""

from __future__ import annotations

import base64
import hashlib
import http.server
import io
import json
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager


def wheel(
    name: str, version: str, files: dict[str, str | bytes], scripts: dict[str, str] | None = None
) -> tuple[str, bytes]:
    """(file name, bytes) of a pure wheel; `scripts` are console entry points."""
    info = f"{name}-{version}.dist-info"
    content = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    if scripts:
        lines = "".join(f"{script} = {target}\n" for script, target in scripts.items())
        content[f"{info}/entry_points.txt"] = f"[console_scripts]\n{lines}"
    record = "".join(f"{path},,\n" for path in [*content, f"{info}/RECORD"])
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path, data in {**content, f"{info}/RECORD": record}.items():
            archive.writestr(zipfile.ZipInfo(path), data)  # of 1980: the same bytes every time
    return f"{name}-{version}-py3-none-any.whl", buffer.getvalue()


class Index:
    """What the server serves (`files`: by package, by file name) and what it was asked."""

    def __init__(self) -> None:
        self.files: dict[str, dict[str, bytes]] = {}
        self.json = True
        self.login: str | None = None
        self.short = False  # end in the middle of a file
        self.asked: list[str] = []
        self.url = ""

    def add(self, package: str, filename: str, data: bytes) -> str:
        """The file's sha256."""
        self.files.setdefault(package, {})[filename] = data
        return hashlib.sha256(data).hexdigest()

    def page(self, package: str) -> tuple[str, bytes]:
        hashes = {name: hashlib.sha256(data).hexdigest() for name, data in self.files[package].items()}
        if self.json:
            files = [
                {"filename": n, "url": f"../../files/{package}/{n}", "hashes": {"sha256": h}} for n, h in hashes.items()
            ]
            body = {"meta": {"api-version": "1.0"}, "name": package, "files": files}
            return "application/vnd.pypi.simple.v1+json", json.dumps(body).encode()
        links = "".join(f'<a href="../../files/{package}/{n}#sha256={h}">{n}</a>\n' for n, h in hashes.items())
        return "text/html", f"<!DOCTYPE html><html><body>{links}</body></html>".encode()


@contextmanager
def serving() -> Iterator[Index]:
    """An index at http://127.0.0.1:PORT/simple."""
    index = Index()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            index.asked.append(self.path)
            parts = self.path.strip("/").split("/")
            expected = f"Basic {base64.b64encode((index.login or '').encode()).decode()}"
            if index.login and self.headers.get("Authorization") != expected:
                self.send_response(401)
                self.send_header("WWW-Authenticate", "Basic")
                self.end_headers()
            elif parts[0] == "simple" and len(parts) == 2 and parts[1] in index.files:
                self.answer(*index.page(parts[1]))
            elif parts[0] == "files" and parts[2] in index.files.get(parts[1], {}):
                self.answer("application/octet-stream", index.files[parts[1]][parts[2]])
            else:
                self.send_error(404)

        def answer(self, kind: str, data: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data[: len(data) // 2] if index.short and kind.endswith("octet-stream") else data)

        def log_message(self, *_: object) -> None:
            return

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        index.url = f"http://127.0.0.1:{server.server_address[1]}/simple"
        yield index
        server.shutdown()
        thread.join()
