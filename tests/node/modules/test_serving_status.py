"""All copies of a node: units and servers that answer as the real ones do."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.node.conftest import HereNode

SHOW = """#!/bin/sh
echo LoadState=loaded
echo ActiveState=active
"""
METRICS = """vllm:num_requests_running{engine="0"} 2.0
vllm:num_requests_waiting{engine="0"} 1.0
vllm:kv_cache_usage_perc{engine="0"} 0.25
vllm:generation_tokens_total{engine="0"} %d
"""


@contextmanager
def server() -> Iterator[str]:
    """A server whose counter of tokens moves by 100 a look."""
    looks = [0]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            looks[0] += self.path == "/metrics"
            body = (METRICS % (100 * looks[0]) if self.path == "/metrics" else "").encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as found:
        Thread(target=found.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{found.server_address[1]}"
        found.shutdown()


def deploy(home: Path, service: str, url: str, apply: Any, **meta: Any) -> None:
    files = {"serve.json": {"content": json.dumps({"url": url, "model": "m"})}}
    apply("release", home=str(home), service=service, files=files, meta={"recipe": "fp8", **meta})


@pytest.fixture
def home(tmp_path: Path, node: HereNode) -> Path:
    node.program("nvidia-smi", "#!/bin/sh\necho '580.95.05, [N/A], 42'\n")
    node.program("systemctl", SHOW)
    return tmp_path / "home"


def test_all_services_of_a_node_with_one_pause(home: Path, apply: Any) -> None:
    with server() as one, server() as two:
        deploy(home, "one", one, apply)
        deploy(home, "two", two, apply)
        deploy(home, "silent", "http://127.0.0.1:9", apply)
        begun = time.monotonic()
        found = apply("serving_status", home=str(home), interval=0.5).result
        took = time.monotonic() - begun
    by_name = {one["service"]: one for one in found["services"]}
    assert list(by_name) == ["one", "silent", "two"]
    assert took < 1.4
    for name in ("one", "two"):
        copy = by_name[name]
        assert (copy["health"], copy["running"], copy["waiting"], copy["kv_use"]) == (200, 2.0, 1.0, 0.25)
        assert 100 < copy["tok_s"] < 220
        assert (copy["driver_then"], copy["drift"], copy["unit_state"]) == ("580.95.05", [], "active")
    assert (by_name["silent"]["health"], by_name["silent"]["tok_s"]) == (None, None)
    assert (found["driver"], found["power_w"], found["temperature_c"]) == ("580.95.05", None, 42.0)


def test_one_service_alone_and_one_that_is_not_there(home: Path, apply: Any, node: HereNode) -> None:
    with server() as url:
        deploy(home, "one", url, apply)
        deploy(home, "two", url, apply)
        (copy,) = apply("serving_status", home=str(home), service="two", interval=0).result["services"]
    assert (copy["service"], copy["tok_s"]) == ("two", None)
    node.program("systemctl", "#!/bin/sh\nexit 1\n")
    (copy,) = apply("serving_status", home=str(home), service="none").result["services"]
    assert (copy["unit_state"], copy["release"], copy["confirmed"], copy["drift"]) == ("absent", None, False, None)
    assert apply("serving_status", home=str(home / "nowhere")).result["services"] == []


def test_a_first_release_that_nobody_has_seen_serve_is_not_confirmed(home: Path, apply: Any) -> None:
    deploy(home, "one", "http://127.0.0.1:9", apply)

    def confirmed() -> tuple[bool, bool]:
        (copy,) = apply("serving_status", home=str(home), interval=0).result["services"]
        return copy["confirmed"], apply("serving_drift", home=str(home), service="one").result["confirmed"]

    assert confirmed() == (False, False)
    apply("release_confirm", home=str(home), service="one")
    assert confirmed() == (True, True)


def test_a_service_with_the_name_of_another_kind_of_unit(home: Path, apply: Any, node: HereNode) -> None:
    deploy(home, "a.socket", "http://127.0.0.1:9", apply)
    apply("serving_status", home=str(home), interval=0)
    assert [argv[-1] for argv in node.ran if argv[0] == "systemctl"] == ["sparkops-a.socket.service"]
