"""A served copy's life with the real engine: looked at, drained, killed, stopped, rebooted, taken away."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.nodes import command, eventually
from tests.engine.node import MODELS, NODE, SECONDS, EngineNode

pytestmark = [pytest.mark.engine, pytest.mark.lab, pytest.mark.network, pytest.mark.timeout(1800)]

FLIGHT = (Path(__file__).parent / "flight.py").read_text()
REQUESTS, TOKENS = 4, 1000
COMPLETE = [{"streamed": streamed, "tokens": TOKENS, "finish_reason": "length"} for streamed in (False, True)]
CORE = "VLLM::EngineCor"


@contextmanager
def in_flight(node: EngineNode) -> Iterator[list[dict[str, Any]]]:
    """Requests that are under way when the block begins; how they ended is in the list when it is left."""
    ends: list[dict[str, Any]] = []
    words = ("runuser", "-u", "spark", "--", "python3", "-", "http://127.0.0.1:8000", "tiny")

    def fly() -> None:
        done = node.nodes.on(NODE, *words, str(REQUESTS), str(TOKENS), stdin=FLIGHT)
        ends.extend(json.loads(line) for line in done.splitlines())

    # While they generate, the engine's two processes spin in sched_yield, for which Linux 6.18 lets all others wait
    # half a minute: they share one CPU, and the others have the rest.
    node.nodes.on(NODE, "sh", "-c", "for pid in $(pgrep -f VLLM::); do taskset -acp 0 $pid || :; done")
    thread = threading.Thread(target=fly)
    thread.start()
    eventually(lambda: (node.status()["running"] or 0) == REQUESTS, 60)
    yield ends
    thread.join()


def test_a_second_deploy_changes_nothing(serving: EngineNode) -> None:
    # Other cases may have left another recipe's copy.
    serving.sparkops("deploy", "tiny", NODE)
    with serving.report.case("deploy tiny again", "nothing changes"):
        run = serving.sparkops("deploy", "tiny", NODE)
    assert run.count("changed") == {NODE: 0}


def test_status_and_doctor(serving: EngineNode) -> None:
    with serving.report.case("status, under load and idle", "requests, tokens a second, KV cache"):
        with in_flight(serving) as ends:
            busy = serving.status()
        idle = serving.status()
    assert (busy["health"], busy["running"], busy["waiting"]) == (200, REQUESTS, 0)
    assert busy["tok_s"] > 0
    assert busy["kv_use"] > 0
    assert (idle["running"], idle["tok_s"], idle["recipe"], idle["model"]) == (0, 0, "tiny", "tiny")
    assert [one for one in ends if one not in COMPLETE] == []
    with serving.report.case("doctor", "serving, nothing found"):
        assert serving.doctor()["findings"] == []


def test_bench(serving: EngineNode) -> None:
    words = ("bench", NODE, "--prompt-tokens", "512", "--tokens", "64", "--runs", "2")
    with serving.report.case("bench, twice", "tokens as asked for, nobody else, the first time remembered"):
        (first,), (second,) = (serving.document(*words)["nodes"][NODE]["copies"] for _ in range(2))
    assert (first["trouble"], second["trouble"]) == (None, None)
    (one,), (two,) = first["measured"], second["measured"]
    for found in (one, two):
        # Answers of other lengths than asked for are `trouble`, as `usage` counts them; so is a prompt.
        assert (found["prompt_tokens"], found["tokens"], found["warnings"]) == (512, 64, [])
        assert found["decode_tok_s"]["median"] > 0
        assert found["ttft_s"]["median"] > 0
    assert (two["before"]["at"], two["before"]["differs"]) == (one["at"], {})


def test_inspect_and_fit_agree_with_the_engine_s_log(serving: EngineNode) -> None:
    with serving.report.case("checkpoint inspect, fit", "the engine's own figures"):
        fit = serving.document("checkpoint", "fit", "tiny", "--node", NODE)
        plain = serving.document("checkpoint", "inspect", f"{MODELS}/tiny", "--node", NODE)
        visual = serving.document("checkpoint", "inspect", f"{MODELS}/tiny-visual", "--node", NODE)
    log = serving.journal()
    tokens = re.search(r"GPU KV cache size: ([\d,]+) tokens", log)
    more = re.search(r"Maximum concurrency for 4,096 tokens per request: ([\d.]+)x", log)
    block = re.search(r"Setting attention block size to (\d+) tokens", log)
    assert tokens and more and block
    assert fit["kv_tokens"] == int(tokens[1].replace(",", ""))
    assert f"{fit['concurrency']:.2f}" == more[1]
    assert fit["block_tokens"] == int(block[1])
    assert (plain["visual_tensors"], visual["visual_tensors"] > 0) == (0, True)


def test_purge_cache_under_a_server(serving: EngineNode) -> None:
    serving.as_spark(f"cat {MODELS}/tiny*/* > /dev/null")
    with serving.report.case("purge-cache", "the models' pages given back, and it serves on"):
        serving.sparkops("purge-cache", NODE)
        again = serving.sparkops("purge-cache", NODE)
    assert again.count("failed") == {NODE: 0}
    assert serving.token()


def test_a_restart_loses_no_request(serving: EngineNode) -> None:
    with serving.report.case(f"restart with {REQUESTS} requests in flight", "none lost"), in_flight(serving) as ends:
        serving.sparkops("restart", NODE)
    assert len(ends) == REQUESTS
    assert [one for one in ends if one not in COMPLETE] == []


def test_sigterm_loses_no_request_and_systemd_starts_it_again(serving: EngineNode) -> None:
    pid = serving.nodes.on(NODE, "systemctl", "show", "-P", "MainPID", "sparkops-vllm").strip()
    with serving.report.case(f"SIGTERM with {REQUESTS} requests in flight", "none lost; it comes back"):
        with in_flight(serving) as ends:
            serving.nodes.on(NODE, "kill", "-TERM", pid)
        assert [one for one in ends if one not in COMPLETE] == []
        eventually(serving.token, 600, 1)
    assert serving.nodes.on(NODE, "systemctl", "show", "-P", "MainPID", "sparkops-vllm").strip() != pid


def test_an_engine_that_is_killed_comes_back_and_doctor_says_so(serving: EngineNode) -> None:
    with serving.report.case("SIGKILL of the engine's process", "exit 0, started again, doctor: engine-died"):
        serving.nodes.on(NODE, "pkill", "-KILL", "-f", CORE)
        eventually(lambda: not serving.token(), 60, 0.5)
        eventually(serving.token, 600, 1)
    assert [(one["id"], one["severity"]) for one in serving.doctor()["findings"]] == [("engine-died", "warning")]
    status = serving.nodes.on(NODE, "systemctl", "show", "-P", "ExecMainStatus", "sparkops-vllm").strip()
    assert status == "0"


def test_stopped_it_is_just_stopped(serving: EngineNode) -> None:
    with serving.report.case("stop", "doctor: stopped, and nothing else"):
        serving.sparkops("stop", NODE)
        assert [one["id"] for one in serving.doctor()["findings"]] == ["stopped"]
    with serving.report.case("start", "serves"):
        serving.sparkops("start", NODE)
    assert serving.token()


def test_a_reboot_brings_it_back(serving: EngineNode) -> None:
    with serving.report.case("reboot of the node", "serves again by itself"):
        serving.nodes.lab("reboot", NODE)
        eventually(serving.token, 600, 1)


def test_remove_takes_all_but_the_weights(serving: EngineNode) -> None:
    with serving.report.case("remove", "unit, releases and engines gone, weights kept"):
        serving.sparkops("remove", NODE, "--engines", "--yes")
    left = serving.nodes.on(NODE, "sh", "-c", f"ls /etc/systemd/system/sparkops* /opt/sparkops/engines {MODELS}; :")
    assert "sparkops-vllm" not in left
    assert "vllm-cpu" not in left
    assert "tiny-visual" in left
    after = command([*serving.argv("status", NODE)], seconds=SECONDS)
    assert "nothing deployed" in after.out
