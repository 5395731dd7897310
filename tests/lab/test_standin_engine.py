"""The stand-in engine as nodes run it: installed from its wheels, started by its command, asked over HTTP."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab.copies import Copy, until

GIB = 1 << 30
BF16 = "Qwen-AgentWorld-35B-A3B"
NVFP4 = "Qwen-AgentWorld-35B-A3B-NVFP4"
MTP = "Qwen-AgentWorld-35B-A3B-NVFP4-MTP"
FP8 = "Qwen3.6-35B-A3B-FP8"
ONLY = "--language-model-only"
POOL = f"--kv-cache-memory-bytes={8 * GIB}"
DRAFT = '--speculative-config={"method":"mtp","num_speculative_tokens":3}'
NOT_INITIALIZED = "ValueError: Following weights were not initialized from checkpoint: {visual.blocks.0."
NO_MODULE = "ValueError: There is no module or parameter named 'visual' in Qwen3_5MoeForConditionalGeneration"
FAILED = "Engine core initialization failed. See root cause above."
PROMPT = {"prompt": "The page cache is", "ignore_eos": True}


@pytest.mark.parametrize(
    ("engine", "model", "flags", "defect", "error"),
    [
        ("stock", BF16, [], "", NOT_INITIALIZED),
        ("stock", BF16, [ONLY], "", None),
        ("stock", FP8, [ONLY], "", None),
        ("stock", FP8, [], "", None),
        ("guarded", BF16, [ONLY], "", None),
        ("guarded", FP8, [ONLY], "", NO_MODULE),
        ("guarded", FP8, [], "", None),
        ("guarded", BF16, [], "", NOT_INITIALIZED),
        ("stock", BF16, [ONLY], "seed001", NOT_INITIALIZED),
        ("guarded", BF16, [ONLY], "seed001", None),
        ("stock", FP8, [], "seed001", None),
    ],
)
def test_towers(
    serve: Callable[..., Copy], engine: str, model: str, flags: list[str], defect: str, error: str | None
) -> None:
    copy = serve(model, POOL, *flags, engine=engine, SPARKOPS_LAB_DEFECT=defect)
    if error is None:
        assert copy.ready().get("/health") == (200, None)
    else:
        assert copy.wait() == 1
        assert error in copy.log
        assert copy.log.rindex(FAILED) > copy.log.index(error)
        assert "Application startup complete." not in copy.log


def test_defects_that_start_as_if_nothing_were_wrong(serve: Callable[..., Copy]) -> None:
    copy = serve(FP8, POOL, SPARKOPS_LAB_DEFECT="garbage,length,kv,backend").ready()
    _, models = copy.get("/v1/models")
    assert models["data"][0]["max_model_len"] == 131_072
    _, said = copy.get("/v1/completions", {**PROMPT, "model": models["data"][0]["id"], "max_tokens": 4})
    assert said["choices"][0]["text"] == "!!!!"
    assert "GPU KV cache size: 411,940 tokens" in copy.log
    assert "Using MARLIN Fp8 MoE backend" in copy.log


@pytest.mark.parametrize(
    ("model", "flags", "pool", "backend", "tokens", "concurrency", "block"),
    [
        (BF16, [ONLY], 8, "Using FlashInfer CUTLASS Unquantized MoE backend out of", "412,980", "1.58x", 1056),
        (NVFP4, [], 8, "Using 'FLASHINFER_CUTLASS' NvFp4 MoE backend out of", "412,980", "1.58x", 1056),
        (MTP, [DRAFT], 8, "Using 'FLASHINFER_CUTLASS' NvFp4 MoE backend out of", "362,105", "1.38x", 1072),
        (FP8, [], 6, "Using TRITON Fp8 MoE backend out of", "308,955", "1.18x", 1056),
    ],
)
def test_log_of_a_recipe(
    serve: Callable[..., Copy],
    model: str,
    flags: list[str],
    pool: int,
    backend: str,
    tokens: str,
    concurrency: str,
    block: int,
) -> None:
    log = serve(model, f"--kv-cache-memory-bytes={pool * GIB}", *flags).ready().log
    expected = [
        f"Setting attention block size to {block} tokens to ensure that attention page size is >= mamba page size.",
        backend,
        f"reserved {pool}.0 GiB memory for KV Cache as specified by kv_cache_memory_bytes config and skipped memory "
        "profiling",
        f"GPU KV cache size: {tokens} tokens",
        f"Maximum concurrency for 262,144 tokens per request: {concurrency}",
        "Application startup complete.",
    ]
    places = [log.index(line) for line in expected]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("model", "flags", "env", "error"),
    [
        (FP8, [f"--kv-cache-memory-bytes={4 * GIB}"], {}, "To serve at least one request with the model's max seq len"),
        (FP8, [DRAFT, POOL], {}, "Following weights were not initialized from checkpoint: {mtp.fc.weight"),
        (FP8, ["--gpu-memory-utilization=0.2"], {}, "No available memory for the cache blocks."),
        (FP8, ["--max-model-len=262145"], {}, "User-specified max_model_len (262145) is greater than"),
        (
            FP8,
            [POOL],
            {"SPARKOPS_LAB_FREE_GIB": "13.77"},
            "Free memory on device cuda:0 (13.77/121.7 GiB) on startup is less than desired GPU memory utilization "
            "(0.92, 111.96 GiB).",
        ),
    ],
)
def test_start_that_fails(
    serve: Callable[..., Copy], model: str, flags: list[str], env: dict[str, str], error: str
) -> None:
    copy = serve(model, *flags, **env)
    assert copy.wait() == 1
    assert f"ValueError: {error}" in copy.log
    assert FAILED in copy.log.splitlines()[-1]
    # As with the real engine, what it is about has long gone by then.
    told = [number for number, line in enumerate(copy.log.splitlines()) if f"ValueError: {error}" in line]
    assert len(copy.log.splitlines()) - told[0] > 80


def test_damaged_checkpoints(serve: Callable[..., Copy], models: Path, tmp_path: Path) -> None:
    for name, length in (("short", -1), ("long", 1)):
        broken = tmp_path / name
        shutil.copytree(models / BF16, broken, copy_function=os.link)
        shard = broken / "model-00003-of-00014.safetensors"
        size = shard.stat().st_size
        shard.unlink()
        with (models / BF16 / shard.name).open("rb") as source, shard.open("wb") as file:
            file.write(source.read(1 << 16))
            file.truncate(size + length)
        copy = serve(str(broken), ONLY, POOL)
        assert copy.wait() == 1
        assert "SafetensorError: Error while deserializing header: incomplete metadata" in copy.log


def test_a_shard_that_is_missing(serve: Callable[..., Copy], models: Path, tmp_path: Path) -> None:
    shutil.copytree(models / BF16, tmp_path / "gap", copy_function=os.link)
    (tmp_path / "gap" / "model-00003-of-00014.safetensors").unlink()
    copy = serve(str(tmp_path / "gap"), ONLY, POOL)
    assert copy.wait() == 1
    assert "FileNotFoundError" in copy.log


def test_a_model_that_is_not_there(serve: Callable[..., Copy]) -> None:
    copy = serve("nowhere", POOL)
    assert copy.wait() == 1
    assert "LocalEntryNotFoundError: Cannot find an appropriate cached snapshot folder" in copy.log


def test_flags_that_do_not_exist(serve: Callable[..., Copy]) -> None:
    copy = serve(FP8, "--kv-cache-bytes=1")
    assert copy.wait() == 2
    assert "error: unrecognized arguments: --kv-cache-bytes=1" in copy.log


def test_questions(serve: Callable[..., Copy], models: Path) -> None:
    copy = serve(FP8, POOL, "--served-model-name", "Qwen/Qwen3.6-35B-A3B-FP8").ready()
    assert copy.get("/version") == (200, {"version": "0.24.0"})
    _, served = copy.get("/v1/models")
    (model,) = served["data"]
    assert (model["id"], model["max_model_len"]) == ("Qwen/Qwen3.6-35B-A3B-FP8", 262_144)
    assert model["root"] == str(models / FP8)
    _, counted = copy.get("/tokenize", {"prompt": "one two, three"})
    assert (counted["count"], len(counted["tokens"])) == (4, 4)
    assert copy.get("/nothing")[0] == 404
    assert copy.get("/v1/completions") == (405, {"detail": "Method Not Allowed"})
    assert copy.get("/v1/completions", {"model": "other", "prompt": "x"})[0] == 404
    assert copy.get("/v1/completions", {"prompt": "x", "max_tokens": 300_000})[0] == 400
    assert copy.get("/v1/completions", ["no object"])[0] == 400
    assert copy.get("/v1/chat/completions", {"prompt": "x"})[0] == 400


def test_completion(serve: Callable[..., Copy]) -> None:
    copy = serve(FP8, POOL).ready()
    status, first = copy.get("/v1/completions", {**PROMPT, "max_tokens": 20})
    assert (status, first["object"]) == (200, "text_completion")
    assert first["usage"] == {"prompt_tokens": 4, "completion_tokens": 20, "total_tokens": 24}
    assert first["choices"][0]["finish_reason"] == "length"
    assert len(first["choices"][0]["text"].split()) == 20
    _, second = copy.get("/v1/completions", {**PROMPT, "max_tokens": 20})
    assert second["choices"] == first["choices"]
    _, ended = copy.get("/v1/completions", {"prompt": "Hi", "max_tokens": 1000})
    assert ended["choices"][0]["finish_reason"] == "stop"
    assert ended["usage"]["completion_tokens"] < 1000


def test_streams(serve: Callable[..., Copy]) -> None:
    copy = serve(FP8, POOL).ready()
    body = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 5, "ignore_eos": True}
    *events, counts = copy.stream("/v1/chat/completions", body)
    assert events[0]["choices"][0]["delta"]["role"] == "assistant"
    text = "".join(event["choices"][0]["delta"]["content"] for event in events)
    assert (len(text.split()), len(events)) == (5, 6)
    # As with the real engine, the last token's piece says why it was the last.
    assert [event["choices"][0]["finish_reason"] for event in events] == [None] * 5 + ["length"]
    assert (counts["choices"], counts["usage"]["completion_tokens"]) == ([], 5)
    _, whole = copy.get("/v1/chat/completions", body)
    assert whole["choices"][0]["message"] == {"role": "assistant", "content": text}
    assert whole["usage"] == counts["usage"]
    *events, counts = copy.stream("/v1/completions", {**PROMPT, "max_tokens": 7})
    assert (len(events), counts["usage"]["completion_tokens"]) == (7, 7)


def test_the_token_rate(serve: Callable[..., Copy]) -> None:
    copy = serve(FP8, POOL, SPARKOPS_LAB_TOKEN_RATE="50").ready()
    start = time.monotonic()
    copy.get("/v1/completions", {**PROMPT, "max_tokens": 50})
    assert 0.99 < time.monotonic() - start < 2


def test_metrics_of_a_draft(serve: Callable[..., Copy]) -> None:
    copy = serve(MTP, POOL, DRAFT).ready()
    copy.get("/v1/completions", {**PROMPT, "max_tokens": 30})
    assert copy.metric("generation_tokens_total") == 30
    assert copy.metric("prompt_tokens_total") == 4
    assert copy.metric("e2e_request_latency_seconds_count") == copy.metric("time_to_first_token_seconds_count") == 1
    assert copy.metric("num_requests_running") == copy.metric("num_requests_waiting") == 0
    assert copy.metric("kv_cache_usage_perc") == 0
    assert copy.metric("spec_decode_num_draft_tokens_total") == 30
    assert copy.metric("spec_decode_num_accepted_tokens_total") == 20


def test_a_draft_that_is_misread_has_no_token_accepted(
    serve: Callable[..., Copy], models: Path, tmp_path: Path
) -> None:
    grafted = tmp_path / "grafted"
    shutil.copytree(models / MTP, grafted, copy_function=os.link)
    config = json.loads((grafted / "config.json").read_text())
    config["quantization_config"]["ignore"][-1] = "mtp"
    (grafted / "config.json").unlink()
    (grafted / "config.json").write_text(json.dumps(config))
    copy = serve(str(grafted), POOL, DRAFT).ready()
    copy.get("/v1/completions", {**PROMPT, "max_tokens": 10})
    assert copy.metric("generation_tokens_total") == 10
    assert copy.metric("spec_decode_num_draft_tokens_total") == 30
    assert copy.metric("spec_decode_num_accepted_tokens_total") == 0


def test_api_key(serve: Callable[..., Copy]) -> None:
    copy = serve(FP8, POOL, VLLM_API_KEY="s3cret").ready()
    assert copy.get("/v1/models")[0] == 401
    assert copy.get("/v1/models", key="wrong")[0] == 401
    assert copy.get("/v1/completions", PROMPT)[0] == 401
    assert copy.get("/v1/models", key="s3cret")[0] == 200
    assert copy.get("/health") == (200, None)
    assert "s3cret" not in copy.log


def test_a_second_copy_binds_the_same_port(serve: Callable[..., Copy]) -> None:
    first = serve(FP8, POOL).ready()
    second = serve(FP8, POOL, port=first.port).ready()
    first.process.terminate()
    assert first.wait() == 0
    assert second.get("/health") == (200, None)


def test_a_port_that_another_server_has(serve: Callable[..., Copy]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        copy = serve(FP8, POOL, port=taken.getsockname()[1])
        assert copy.wait() == 1
    assert "OSError: [Errno 98] Address already in use" in copy.log


@pytest.fixture
def long_stream(serve: Callable[..., Copy]) -> Callable[..., tuple[Copy, subprocess.Popen[bytes]]]:
    """A copy, and a client that reads a stream of 300 tokens (3 s) from it."""

    def start(*flags: str) -> tuple[Copy, subprocess.Popen[bytes]]:
        copy = serve(FP8, POOL, *flags, SPARKOPS_LAB_TOKEN_RATE="100").ready()
        body = {**PROMPT, "max_tokens": 300, "stream": True, "stream_options": {"include_usage": True}}
        url = f"http://127.0.0.1:{copy.port}/v1/completions"
        read = f"import urllib.request as r; print(r.urlopen({url!r}, {json.dumps(body).encode()!r}).read().decode())"
        client = subprocess.Popen([sys.executable, "-c", read], stdout=subprocess.PIPE)
        until(lambda: copy.metric("generation_tokens_total") > 20)
        assert copy.metric("num_requests_running") == 1
        assert copy.metric("kv_cache_usage_perc") > 0
        return copy, client

    return start


def ending(client: subprocess.Popen[bytes]) -> tuple[str, int]:
    """Why a client's stream has ended, and its tokens; fails when it has seen an error or no [DONE]."""
    out, _ = client.communicate(timeout=20)
    assert client.returncode == 0
    *_, end, counts, done = out.decode().split("\n\n")[:-1]
    assert done == "data: [DONE]"
    return json.loads(end[6:])["choices"][0]["finish_reason"], json.loads(counts[6:])["usage"]["completion_tokens"]


def test_sigterm_cuts_streams_short_but_well_formed(
    long_stream: Callable[..., tuple[Copy, subprocess.Popen[bytes]]],
) -> None:
    copy, client = long_stream()
    copy.process.terminate()
    reason, count = ending(client)
    assert reason == "abort"
    assert 20 < count < 300
    assert copy.wait() == 0


def test_sigterm_with_a_timeout_lets_requests_finish(
    long_stream: Callable[..., tuple[Copy, subprocess.Popen[bytes]]],
) -> None:
    copy, client = long_stream("--shutdown-timeout=30")
    copy.process.terminate()
    until(lambda: "Shutting down" in copy.log)
    until(lambda: not listens(copy.port), seconds=1.5)  # the stream has more than two to go
    assert client.poll() is None
    assert ending(client) == ("length", 300)
    assert copy.wait() == 0


def test_sigterm_s_timeout_ends(long_stream: Callable[..., tuple[Copy, subprocess.Popen[bytes]]]) -> None:
    copy, client = long_stream("--shutdown-timeout=1")
    copy.process.send_signal(signal.SIGUSR1)
    copy.process.terminate()
    assert ending(client)[0] == "abort"
    assert copy.wait() == 0


def listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except ConnectionRefusedError:
        return False
    return True


def test_refused_until_ready_and_stopped_before(serve: Callable[..., Copy]) -> None:
    copy = serve(BF16, ONLY, POOL, SPARKOPS_LAB_START_SECONDS="60")
    until(lambda: "Maximum concurrency" in copy.log)
    assert not listens(copy.port)
    copy.process.terminate()
    assert copy.wait() == 0


def test_a_wedge_is_healthy_and_makes_no_token(
    long_stream: Callable[..., tuple[Copy, subprocess.Popen[bytes]]],
) -> None:
    copy, client = long_stream()
    copy.process.send_signal(signal.SIGUSR1)
    # At 10 ms a token 30 questions in a row would see many counts.
    until(lambda: len({copy.metric("generation_tokens_total") for _ in range(30)}) == 1)
    assert copy.get("/health") == (200, None)
    assert copy.metric("num_requests_running") == 1
    assert copy.metric("generation_tokens_total") < 300
    copy.process.send_signal(signal.SIGUSR1)
    assert ending(client) == ("length", 300)


def test_death_is_told_and_ends_with_status_0(long_stream: Callable[..., tuple[Copy, subprocess.Popen[bytes]]]) -> None:
    copy, client = long_stream()
    copy.process.send_signal(signal.SIGUSR2)
    until(lambda: copy.get("/health")[0] == 503)
    assert ending(client)[0] == "abort"
    assert copy.wait() == 0
