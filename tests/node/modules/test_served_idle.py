from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from sparkops.node.api import Failure, Outcome
from tests.node.conftest import Apply, HereNode

METRICS = """\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{{engine="0",model_name="m"}} {running}
vllm:num_requests_running{{engine="1",model_name="m"}} 0.0
vllm:num_requests_waiting{{engine="0",model_name="m"}} {waiting}
vllm:num_requests_waiting_by_reason{{engine="0",reason="capacity"}} 7.0
"""


class Copy(ThreadingHTTPServer):
    """A served copy with so many requests at each look at its metrics; the last of them stays."""

    looks: list[tuple[float, float]]
    status = 200
    text: str | None = None


class Handler(BaseHTTPRequestHandler):
    server: Copy

    def do_GET(self) -> None:
        assert self.path == "/metrics"
        looks = self.server.looks
        running, waiting = looks.pop(0) if len(looks) > 1 else looks[0]
        text = METRICS.format(running=running, waiting=waiting) if self.server.text is None else self.server.text
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def copy() -> Iterator[Copy]:
    with Copy(("127.0.0.1", 0), Handler) as it:
        it.looks = [(0.0, 0.0)]
        threading.Thread(target=it.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield it
        it.shutdown()


Ask = Callable[..., Outcome]


@pytest.fixture
def ask(apply: Apply, node: HereNode, copy: Copy, tmp_path: Path) -> Ask:
    (tmp_path / "serve.json").write_text(json.dumps({"url": f"http://127.0.0.1:{copy.server_port}", "model": "m"}))
    return lambda **values: apply("served_idle", **{"release": str(tmp_path), "interval": 0.05, **values})


def test_an_idle_copy_is_not_waited_for(ask: Ask, node: HereNode) -> None:
    outcome = ask(timeout=30.0)
    assert (outcome.state, outcome.result["requests"]) == ("ok", 0)
    assert outcome.result["seconds"] < 5
    assert node.moves == []


def test_it_waits_for_running_and_waiting_requests(ask: Ask, node: HereNode, copy: Copy) -> None:
    copy.looks = [(2.0, 1.0), (1.0, 0.0), (0.0, 1.0), (0.0, 0.0), (9.0, 0.0)]
    assert ask(timeout=30.0).result["requests"] == 0
    assert [msg for *_, msg in node.moves] == ["3 requests left", "1 requests left", "1 requests left"]


def test_the_wait_is_bounded_and_says_what_is_left(ask: Ask, copy: Copy) -> None:
    copy.looks = [(4.0, 0.0)]
    began = time.monotonic()
    outcome = ask(timeout=0.5)
    assert (outcome.state, outcome.result["requests"]) == ("ok", 4)
    assert 0.5 <= time.monotonic() - began < 5
    assert ask(timeout=0.0).result["requests"] == 4


def test_check_mode_looks_once(ask: Ask, node: HereNode, copy: Copy) -> None:
    copy.looks = [(4.0, 0.0)]
    assert (ask(timeout=60.0, check=True).state, node.moves) == ("ok", [])


@pytest.mark.parametrize(("status", "text"), [(503, None), (200, ""), (200, "\x00{"), (200, "other_metric 3\n")])
def test_a_copy_that_does_not_say_is_not_waited_for(ask: Ask, copy: Copy, status: int, text: str | None) -> None:
    copy.looks, copy.status, copy.text = [(4.0, 0.0)], status, text
    assert ask(timeout=60.0).result["requests"] is None


@pytest.mark.parametrize("content", [None, "", "[]", "{}", '{"url": 3}', '{"url": "ftp://x"}'])
def test_what_is_no_release_has_nothing_to_wait_for(ask: Ask, tmp_path: Path, content: str | None) -> None:
    (tmp_path / "serve.json").unlink()
    if content is not None:
        (tmp_path / "serve.json").write_text(content)
    assert ask(timeout=60.0).result["requests"] is None


def test_nor_has_a_copy_that_is_gone(ask: Ask, copy: Copy) -> None:
    copy.shutdown()
    copy.server_close()
    assert ask(timeout=60.0).result["requests"] is None


@pytest.mark.parametrize(("state", "waits"), [("inactive", False), ("failed", False), ("active", True)])
def test_another_s_server_is_not_waited_for(ask: Ask, node: HereNode, copy: Copy, state: str, waits: bool) -> None:
    copy.looks = [(4.0, 0.0)]
    node.program("systemctl", f"#!/bin/sh\necho LoadState=loaded\necho ActiveState={state}\n")
    assert ask(timeout=0.1, unit="vllm").result["requests"] == (4 if waits else None)


def test_wrong_times(ask: Ask) -> None:
    with pytest.raises(Failure, match="not negative"):
        ask(timeout=-1.0)
    with pytest.raises(Failure, match="not negative"):
        ask(interval=0.0)
