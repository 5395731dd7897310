"""Headers over HTTP, from a stand-in hub on the loopback that fails in all the ways hubs do."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from sparkops.checkpoint.headers import Headers
from sparkops.checkpoint.hub import Hub
from sparkops.checkpoint.inspect import inspect
from sparkops.checkpoint.sources import Repository, headers
from sparkops.errors import InputError
from sparkops.node.ranges import Web

from .conftest import Make, Shapes
from .standin_hub import SHA, Handler, Server, broken, busy, cut, hung_up, serving, stalled

TOKEN = "hf_secretsecretsecret"
NVFP4 = "Qwen-AgentWorld-35B-A3B-NVFP4"
CONFIG = {"model_type": "llama", "num_hidden_layers": 1}
TENSORS: Shapes = {f"model.layers.0.self_attn.{n}.weight": ("BF16", [1000]) for n in range(3000)}


@pytest.fixture
def serve() -> Iterator[Callable[[Path], Server]]:
    with ExitStack() as stack:
        yield lambda folder: stack.enter_context(serving(folder))


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


def test_an_endpoint_with_a_path(server: Server) -> None:
    def behind(handler: Handler, at: int) -> bool:
        if handler.path.startswith("/mirror/of/hf/"):
            handler.path = handler.path[len("/mirror/of/hf") :]
            return False
        handler.say(404)
        return True

    server.spoil = behind
    for slash in ("", "/"):
        assert headers("hf:org/model", f"{server.url}/mirror/of/hf{slash}").files == headers(str(server.folder)).files


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


def test_a_server_that_sends_a_few_bytes_a_time_is_given_up(server: Server) -> None:
    def drips(handler: Handler, at: int) -> bool:
        handler.short = 10 if "safetensors" in handler.path and handler.headers.get("Range") else None
        return False

    server.spoil = drips
    with pytest.raises(InputError, match=r"the connection ended .*5 times"):
        ask(server)


@pytest.mark.parametrize(
    ("trouble", "message"),
    [
        (busy, "HTTP 429 .*5 times"),
        (broken, "HTTP 503 .*5 times"),
        (hung_up, "5 times"),
        (cut, "it ended after 10 of .*5 times"),
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
