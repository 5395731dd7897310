from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from sparkops.node import serving_probe
from sparkops.node.api import Failure

MODEL = "Qwen/Qwen3.6-35B-A3B-FP8"


class Serving(ThreadingHTTPServer):
    """A served copy whose answers a test sets: status by path, and what it says."""

    key: str | None = None
    status: dict[str, int]
    models: list[dict[str, Any]]
    completion: dict[str, Any]
    asked: list[tuple[str, Any]]


class Handler(BaseHTTPRequestHandler):
    server: Serving

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.asked.append((self.path, json.loads(body) if body else None))
        status = self.server.status.get(self.path, 200)
        if (
            self.path != "/health"
            and self.server.key
            and self.headers.get("Authorization") != f"Bearer {self.server.key}"
        ):
            status = 401
        says = {"/health": "", "/v1/models": {"data": self.server.models}, "/v1/completions": self.server.completion}
        text = json.dumps({"error": "trouble"} if status != 200 else says[self.path]).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = answer

    def log_message(self, *_: Any) -> None:
        """Quiet."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serving]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with Serving(("127.0.0.1", 0), Handler) as it:
        it.status, it.asked = {}, []
        it.models = [{"id": MODEL, "max_model_len": 262144}]
        it.completion = {"choices": [{"text": " the"}], "usage": {"completion_tokens": 1}}
        threading.Thread(target=it.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield it
        it.shutdown()


def url(server: Serving) -> str:
    return f"http://127.0.0.1:{server.server_address[1]}"


def ask(apply: Any, server: Serving, **more: Any) -> Any:
    return apply("http_ready", **{"url": url(server), "model": MODEL, "timeout": 0.5, "interval": 0.05, **more})


def test_ready_means_a_token(server: Serving, apply: Any) -> None:
    for check in (True, False):
        done = ask(apply, server, check=check)
        assert (done.state, done.result["model"], done.result["max_model_len"]) == ("ok", MODEL, 262144)
        assert done.result["seconds"] < 0.5
    assert [path for path, _ in server.asked] == ["/health", "/v1/models", "/v1/completions"] * 2
    assert server.asked[2][1] | {"prompt": ""} == {"model": MODEL, "prompt": "", "max_tokens": 1, "temperature": 0}


def test_it_waits_and_tells_how_long(server: Serving, node: Any, apply: Any) -> None:
    server.status["/health"] = 503
    threading.Timer(0.3, server.status.clear).start()
    done = ask(apply, server, timeout=5)
    assert done.state == "ok"
    assert 0.2 < done.result["seconds"] < 2
    assert next((total, unit) for _, total, unit, _ in node.moves) == (5, "s")


@pytest.mark.parametrize(
    ("status", "completion", "reason"),
    [
        ({"/health": 503}, None, "/health: status 503"),
        ({"/v1/completions": 500}, None, "/v1/completions: status 500 trouble"),
        ({}, {"choices": [{"text": ""}], "usage": {"completion_tokens": 0}}, "no token was generated"),
        ({}, {"choices": []}, "no token was generated"),
        ({}, "?", "no token was generated"),
    ],
)
def test_not_in_time(server: Serving, apply: Any, status: dict[str, int], completion: Any, reason: str) -> None:
    server.status = status
    server.completion = completion or server.completion
    with pytest.raises(Failure, match=f"not ready after 0.5 s: .*{reason}"):
        ask(apply, server)
    started = time.monotonic()
    assert ask(apply, server, check=True, timeout=60).state == "unknown"
    assert time.monotonic() - started < 1, "check mode waited"


def test_nobody_there(server: Serving, apply: Any) -> None:
    server.shutdown()
    server.server_close()
    with pytest.raises(Failure, match="Connection refused"):
        ask(apply, server)


def test_another_model_is_no_reason_to_wait(server: Serving, apply: Any) -> None:
    server.models = [{"id": "other"}]
    started = time.monotonic()
    with pytest.raises(Failure, match=f"serves other, not {MODEL}"):
        ask(apply, server, timeout=60)
    assert time.monotonic() - started < 1
    assert ask(apply, server, check=True).state == "unknown"


@pytest.mark.parametrize(
    ("told", "message"), [({"max_model_len": 131072}, "is 131,072, not 262,144"), ({}, "is not told, not 262,144")]
)
def test_another_context_is_no_reason_to_wait(server: Serving, apply: Any, told: dict[str, int], message: str) -> None:
    assert ask(apply, server, max_model_len=262144).state == "ok"
    server.models = [{"id": MODEL, **told}]
    started = time.monotonic()
    with pytest.raises(Failure, match=message):
        ask(apply, server, max_model_len=262144, timeout=60)
    assert time.monotonic() - started < 1
    assert ask(apply, server, max_model_len=262144, check=True).state == "unknown"
    assert ask(apply, server).state == "ok"


GOLDEN = {"prompt": "The capital of France is", "answer": "Paris"}


def test_a_golden_answer_is_asked_for_greedily(server: Serving, apply: Any) -> None:
    server.completion = {"choices": [{"text": " Paris. The"}], "usage": {"completion_tokens": 3}}
    assert ask(apply, server, golden=GOLDEN).state == "ok"
    assert server.asked[-1][1] == {"model": MODEL, "prompt": GOLDEN["prompt"], "max_tokens": 64, "temperature": 0}


@pytest.mark.parametrize(
    "completion",
    [
        {"choices": [{"text": " !!!!!" + "!" * 1000}], "usage": {"completion_tokens": 64}},
        {"choices": [{"text": None}], "usage": {"completion_tokens": 64}},
    ],
)
def test_garbage_is_shown_and_not_waited_for(server: Serving, apply: Any, completion: dict[str, Any]) -> None:
    server.completion = completion
    started = time.monotonic()
    with pytest.raises(Failure, match=r"to the prompt .* it answers .* no 'Paris'") as caught:
        ask(apply, server, golden=GOLDEN, timeout=60)
    assert time.monotonic() - started < 1
    assert len(caught.value.msg) < 500
    assert ask(apply, server, golden=GOLDEN, check=True).state == "unknown"


@pytest.mark.parametrize("golden", [{}, {"prompt": "x"}, {"prompt": "x", "answer": ""}, {**GOLDEN, "more": "x"}])
def test_half_a_golden_answer(server: Serving, apply: Any, golden: dict[str, str]) -> None:
    with pytest.raises(Failure, match="golden must be"):
        ask(apply, server, golden=golden)


def test_a_release_says_what_it_must_be(tmp_path: Path, server: Serving, apply: Any) -> None:
    said = {"url": url(server), "model": MODEL, "max_model_len": 262144, "golden": GOLDEN}
    (tmp_path / "env").write_text("")

    def check(**change: Any) -> Any:
        (tmp_path / "serve.json").write_text(json.dumps({**said, **change}))
        return apply("http_ready", release=str(tmp_path), timeout=0.5)

    with pytest.raises(Failure, match="no 'Paris'"):
        check()
    with pytest.raises(Failure, match="is 262,144, not 1,024"):
        check(max_model_len=1024)
    assert check(golden=None).state == "ok"
    del said["max_model_len"], said["golden"]
    assert check().state == "ok", "a release of an older sparkops"


def test_a_release_says_how_long_its_start_may_take(tmp_path: Path, server: Serving, apply: Any) -> None:
    server.status["/health"] = 503
    (tmp_path / "serve.json").write_text(json.dumps({"url": url(server), "model": MODEL}))
    (tmp_path / "recipe.json").write_text('{"expect": {"ready_within": 0.3}}')
    with pytest.raises(Failure, match=r"not ready after 0\.3 s"):
        apply("http_ready", release=str(tmp_path))
    with pytest.raises(Failure, match=r"not ready after 0\.1 s"):
        apply("http_ready", release=str(tmp_path), timeout=0.1)


def test_the_key_comes_from_the_file_and_is_not_shown(tmp_path: Path, server: Serving, apply: Any) -> None:
    server.key = "hush"
    with pytest.raises(Failure, match="env_file must hold"):
        ask(apply, server)
    assert serving_probe.api_key('VLLM_API_KEY="a\\"b\\\\c\\n"\n') == 'a"b\\c\\n'
    for text in ("A=1\nVLLM_API_KEY=hush\n", 'VLLM_API_KEY="hush"\n', "  VLLM_API_KEY='hush'  "):
        (tmp_path / "env").write_text(text)
        done = ask(apply, server, env_file=f"{tmp_path}/env")
        assert done.state == "ok"
        assert "hush" not in repr(vars(done))


@pytest.mark.parametrize("bad", ["", "127.0.0.1:8000", "ftp://x", "http://"])
def test_a_bad_url(apply: Any, bad: str) -> None:
    with pytest.raises(Failure, match="no URL of a server"):
        apply("http_ready", url=bad, model=MODEL)


def systemctl(node: Any, folder: Path, *answers: dict[str, Any]) -> None:
    """A systemctl whose `show` gives one answer after the other, and the last one from then on."""
    for number, answer in enumerate(answers):
        (folder / f"show{number}").write_text("".join(f"{key}={value}\n" for key, value in answer.items()))
    node.program(
        "systemctl",
        f"#!/bin/sh\ncd {folder}; n=$(cat n 2>/dev/null || echo 0); [ -e show$n ] || n={len(answers) - 1}\n"
        "cat show$n; echo $((n + 1)) > n\n",
    )
    node.program("journalctl", "#!/bin/sh\necho 'ValueError: Free memory on device'\n")


@pytest.mark.parametrize(
    ("now", "message"),
    [
        ({"LoadState": "loaded", "ActiveState": "failed", "Result": "exit-code"}, "vllm.service is failed"),
        ({"LoadState": "loaded", "ActiveState": "activating", "NRestarts": 7}, "restarts in a loop"),
        ({"LoadState": "not-found", "ActiveState": "inactive"}, "there is no unit vllm.service"),
    ],
)
def test_a_unit_that_gave_up_is_not_waited_for(
    tmp_path: Path, server: Serving, node: Any, apply: Any, now: dict[str, Any], message: str
) -> None:
    server.status["/health"] = 503
    up = {"LoadState": "loaded", "ActiveState": "active", "NRestarts": 5}
    systemctl(node, tmp_path, up, up, {**up, "NRestarts": 6}, now)
    started = time.monotonic()
    with pytest.raises(Failure, match=message) as caught:
        ask(apply, server, timeout=60, unit="vllm")
    assert time.monotonic() - started < 5
    assert caught.value.result["journal"] == ["ValueError: Free memory on device"]
    assert "ValueError: Free memory" in caught.value.msg
