"""Headers over HTTP, from a stand-in hub on the loopback that fails in all the ways hubs do."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from sparkops.checkpoint.headers import Headers
from sparkops.checkpoint.hub import Hub
from sparkops.checkpoint.inspect import inspect
from sparkops.checkpoint.sources import Repository, headers
from sparkops.errors import InputError
from sparkops.node.ranges import Web

from .conftest import Make, Shapes

TOKEN = "hf_secretsecretsecret"
SHA = "c0ffee"
NVFP4 = "Qwen-AgentWorld-35B-A3B-NVFP4"
CONFIG = {"model_type": "llama", "num_hidden_layers": 1}
TENSORS: Shapes = {f"model.layers.0.self_attn.{n}.weight": ("BF16", [1000]) for n in range(3000)}


class Server(ThreadingHTTPServer):
    """A hub with one model. Every request is noted; `spoil` may answer one by itself (True) before it is served."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.folder = folder
        self.seen: list[tuple[str, str | None, str | None]] = []
        self.sent = 0
        self.spoil: Callable[[Handler, int], bool] = lambda handler, at: False
        self.api = True
        self.ranges = True
        self.etag = '"1"'

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
                while piece := file.read(1 << 16):
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
            self.write(file.read(last + 1 - start))

    def say(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        self.head(status, len(body), headers or {})
        self.write(body)

    def head(self, status: int, length: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(length), **headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def write(self, data: bytes) -> None:
        self.wfile.write(data[: self.short])
        self.wfile.flush()
        self.server.sent += len(data[: self.short])
        time.sleep(self.rest)

    def log_message(self, *_: Any) -> None:
        """Nothing is logged."""


@pytest.fixture
def serve() -> Iterator[Callable[[Path], Server]]:
    servers: list[Server] = []

    def start(folder: Path) -> Server:
        server = Server(folder)
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def server(serve: Callable[[Path], Server], make: Make) -> Server:
    return serve(make({"a.safetensors": TENSORS, "b.safetensors": {"lm_head.weight": ("U8", [7])}}, CONFIG, index=True))


def ask(server: Server, source: str = "hf:org/model", token: str | None = None, stall: float = 5.0) -> Headers:
    hub = Hub(server.url, token)
    hub.web = Web(server.url, token, stall=stall, pause=0.01)
    return Headers.of(hub.survey(Repository.of(source)))


def test_only_headers_are_fetched(serve: Callable[[Path], Server], models: Path) -> None:
    server = serve(models / NVFP4)
    found = inspect(ask(server))
    assert (found.tensors, found.count("vision"), f"{found.decode_bytes / 1e9:.2f}") == (124_756, 333, "2.42")
    assert found.file_bytes == (models / NVFP4 / "model.safetensors").stat().st_size
    assert server.sent < 17_583_240 + 100_000
    assert all(f"/resolve/{SHA}/" in path for path, _, _ in server.seen[1:])


def test_the_same_as_from_the_disk(server: Server) -> None:
    found = ask(server, "hf:org/model@v1.0")
    assert server.seen[0][0] == "/api/models/org/model/revision/v1.0"
    assert found.path == f"hf:org/model@{SHA}"
    here = headers(str(server.folder))
    assert (found.files, found.index, found.config, found.twice) == (here.files, here.index, here.config, here.twice)
    # The header of a.safetensors is longer than the first request.
    assert [span for path, span, _ in server.seen if "a.saf" in path][1].startswith("bytes=100000-")  # type: ignore[union-attr]


def test_the_endpoint_comes_from_the_environment(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", server.url + "/")
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert headers("hf:org/model").files
    assert {token for *_, token in server.seen} == {f"Bearer {TOKEN}"}
    with pytest.raises(InputError, match="no address of a hub"):
        headers("hf:org/model", "ftp://x")


def test_a_mirror_without_an_api_and_without_ranges(server: Server) -> None:
    server.api = server.ranges = False
    found = ask(server)
    assert (len(found.files), found.path) == (2, "hf:org/model@main")
    assert found.files == headers(str(server.folder)).files
    (server.folder / "model.safetensors.index.json").unlink()
    (server.folder / "b.safetensors").rename(server.folder / "model.safetensors")
    assert [file.name for file in ask(server).files] == ["model.safetensors"]


def test_redirects(server: Server, serve: Callable[[Path], Server]) -> None:
    store = serve(server.folder)

    def redirect(handler: Handler, at: int) -> bool:
        del at
        if "/resolve/" in handler.path and "moved" not in handler.path:
            code = 308 if "config" in handler.path else 302
            handler.say(code, headers={"Location": store.url + handler.path})
        return "/resolve/" in handler.path

    server.spoil = redirect
    assert len(ask(server, token=TOKEN).files) == 2
    # Another origin gets the range and not the token.
    assert {token for *_, token in store.seen} == {None}
    assert any(span == "bytes=0-99999" for _, span, _ in store.seen)
    assert {token for *_, token in server.seen} == {f"Bearer {TOKEN}"}


def test_a_renamed_model(server: Server) -> None:
    def renamed(handler: Handler, at: int) -> bool:
        del at
        if "/old/name/" in handler.path:
            handler.say(307, headers={"Location": handler.path.replace("/old/name/", "/org/model/")})
        return "/old/name/" in handler.path

    server.spoil = renamed
    assert len(ask(server, "hf:old/name", TOKEN).files) == 2
    assert {token for *_, token in server.seen} == {f"Bearer {TOKEN}"}


def test_it_redirects_to_what_is_no_web(server: Server) -> None:
    def astray(handler: Handler, at: int) -> bool:
        del at
        handler.say(302, headers={"Location": "file:///etc/passwd"})
        return True

    server.spoil = astray
    with pytest.raises(InputError, match="Redirection to url 'file:"):
        ask(server)


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


@pytest.mark.parametrize("trouble", [busy, broken, cut, hung_up, stalled])
def test_a_moment_s_trouble_is_survived(server: Server, trouble: Callable[[Handler], bool]) -> None:
    server.spoil = lambda handler, at: at % 2 == 0 and trouble(handler)
    assert ask(server, stall=0.3).files == headers(str(server.folder)).files


def test_the_rest_of_a_header_that_is_cut_short(server: Server) -> None:
    cuts: list[int] = []

    def spoil(handler: Handler, at: int) -> bool:
        found = re.match(r"bytes=(\d+)-", handler.headers.get("Range", ""))
        if found and int(found[1]) >= 100_000 and len(cuts) < 2:
            cuts.append(int(found[1]))
            handler.short = 10
        return False

    server.spoil = spoil
    assert ask(server).files == headers(str(server.folder)).files
    # What has come is not asked for again.
    assert cuts == [100_000, 100_010]


@pytest.mark.parametrize(
    ("trouble", "message"),
    [
        (busy, "HTTP 429 .*5 times"),
        (broken, "HTTP 503 .*5 times"),
        (hung_up, "5 times"),
        (stalled, "nothing came for a while"),
        (lambda handler: handler.say(401), "HTTP 401"),
        (lambda handler: handler.say(418), "HTTP 418"),
        (lambda handler: handler.say(200, b"<html>"), "no listing"),
        (lambda handler: handler.say(200, b'{"siblings": [1]}'), "no listing"),
        (lambda handler: handler.say(200, b'{"siblings": []}'), "no .*safetensors"),
        (lambda handler: handler.say(404), "no model.safetensors"),
    ],
)
def test_lasting_trouble_is_named(server: Server, trouble: Callable[[Handler], bool | None], message: str) -> None:
    server.spoil = lambda handler, at: trouble(handler) in (None, True)
    with pytest.raises(InputError, match=message) as caught:
        ask(server, token=TOKEN, stall=0.2)
    assert TOKEN not in f"{caught.value}{caught.value.hint}{caught.value!r}"


def test_a_file_that_changes_meanwhile(server: Server) -> None:
    def change(handler: Handler, at: int) -> bool:
        del at
        if handler.headers.get("Range", "").startswith("bytes=100000-"):
            server.etag = '"2"'
        return False

    server.spoil = change
    with pytest.raises(InputError, match="changed while it was read"):
        ask(server)


def test_another_part_than_was_asked_for(server: Server) -> None:
    def shifted(handler: Handler, at: int) -> bool:
        del at
        if "safetensors" in handler.path and handler.headers.get("Range"):
            handler.say(206, b"x" * 8, {"Content-Range": "bytes 8-15/100"})
            return True
        return False

    server.spoil = shifted
    with pytest.raises(InputError, match="another part"):
        ask(server)


def test_damaged_and_empty_files_are_named(server: Server) -> None:
    path = server.folder / "b.safetensors"
    whole = path.read_bytes()
    for content, message in (
        (whole[:-3], "b.safetensors: truncated"),
        (b"<html></html>", "b.safetensors: "),
        (b"", "empty"),
    ):
        path.write_bytes(content)
        with pytest.raises(InputError, match=message):
            ask(server)


@pytest.mark.parametrize(
    "source", ["hf:", "hf:model", "hf:a/b/c", "hf:../b", "hf:a/b@", "hf:a b/c", "hf:a/b?x=1", "hf:a/é"]
)
def test_names_that_are_none(source: str) -> None:
    with pytest.raises(InputError, match="names no model"):
        headers(source, "http://127.0.0.1:9")
