"""Measuring served copies: against the stand-in engine, and against a server that misbehaves as a test wants."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sparkops.lab.standin.vllm.engine import metrics
from sparkops.lab.standin.vllm.engine.core import Engine
from sparkops.lab.standin.vllm.engine.loader import Loaded
from sparkops.lab.standin.vllm.entrypoints import http, protocol
from sparkops.node import speed, speed_record
from sparkops.node.api import Failure
from tests.node.conftest import HereNode

MODEL, KEY, RATE = "m", "hunter2", 1000.0
SHOW = "#!/bin/sh\necho LoadState=loaded\necho ActiveState=inactive\n"
RECIPE = {"checkpoint": {"bytes_per_token": 10**9}, "published": [{"metric": "decode", "value": 1.0}]}


class Serving:
    """A stand-in copy in this process; `asked` has the bodies of its completions."""

    def __init__(self, draft: int = 0) -> None:
        self.engine = Engine(Loaded(max_model_len=4096, kv_tokens=100_000, draft_tokens=draft, draft_sound=True))
        self.engine.rate = RATE
        self.server = http.Server(("127.0.0.1", 0), names=[MODEL], root="/m", keys=[KEY])
        self.server.engine = self.engine
        self.server.server_activate()
        self.asked: list[dict[str, Any]] = []
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def end(self) -> None:
        self.engine.stopping.set()
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Serving]]:
    """The copies that a test starts; quiet ones, whose completions are kept."""
    started: list[Serving] = []
    answer = http.Handler.answer
    call = protocol.Call.__init__

    def keep(self: protocol.Call, body: dict[str, Any], **more: Any) -> None:
        call(self, body, **more)
        self.body = body  # type: ignore[attr-defined]

    def kept(self: http.Handler, one: protocol.Call) -> None:
        next(copy for copy in started if copy.server is self.server).asked.append(one.body)  # type: ignore[attr-defined]
        answer(self, one)

    monkeypatch.setattr(protocol.Call, "__init__", keep)
    monkeypatch.setattr(http.Handler, "answer", kept)
    monkeypatch.setattr(http.Handler, "log_request", lambda *_: None)
    yield started
    for copy in started:
        copy.end()


@pytest.fixture
def home(tmp_path: Path, node: HereNode) -> Path:
    node.program("nvidia-smi", "#!/bin/sh\necho '580.95.05, [N/A], 42'\n")
    node.program("systemctl", SHOW)
    return tmp_path / "home"


@pytest.fixture
def serve(home: Path, copies: list[Serving], apply: Any) -> Any:
    """serve("vllm"): a deployed service and its copy."""

    def start(service: str = "vllm", **more: Any) -> Serving:
        copies.append(Serving(**more))
        deploy(home, apply, copies[-1].url, service)
        return copies[-1]

    return start


def deploy(home: Path, apply: Any, url: str, service: str = "vllm") -> None:
    serve = {"url": url, "model": MODEL, "max_model_len": 4096}
    files = {
        "serve.json": {"content": json.dumps(serve)},
        "recipe.json": {"content": json.dumps(RECIPE)},
        "env": {"content": f"VLLM_API_KEY={KEY}\n"},
    }
    apply("release", home=str(home), service=service, files=files, meta={"recipe": "fp8", "engine": "e-1"})


@pytest.fixture
def bench(home: Path, apply: Any) -> Any:
    """The copies' results, small and fast ones unless said otherwise."""

    def run(**args: Any) -> list[dict[str, Any]]:
        values = {"home": str(home), "prompt_tokens": [64], "tokens": 50, "runs": 2, **args}
        done = apply("serving_bench", **values)
        assert done.state == "ok"
        found: list[dict[str, Any]] = done.result["copies"]
        return found

    return run


def test_a_copy_is_measured(serve: Any, bench: Any) -> None:
    serving = serve()
    (copy,) = bench(prompt_tokens=[64, 700])
    assert (copy["trouble"], copy["recipe"], copy["engine"], copy["engine_version"]) == (None, "fp8", "e-1", "0.24.0")
    assert (copy["bytes_per_token"], copy["published"]) == (10**9, RECIPE["published"])
    assert (copy["driver"], copy["kernel"]) == ("580.95.05", os.uname().release)
    assert [(one["prompt_tokens"], one["warnings"], one["accepted_per_draft"]) for one in copy["measured"]] == [
        (64, [], None),
        (700, [], None),
    ]
    for one in copy["measured"]:
        assert 0.5 * RATE < one["decode_tok_s"]["median"] < 1.1 * RATE
        assert 0 < one["ttft_s"]["median"] < 0.2
        assert one["decode_tok_s"]["min"] <= one["decode_tok_s"]["median"] <= one["decode_tok_s"]["max"]
        assert one["prefill_tok_s"]["max"] == pytest.approx(one["prompt_tokens"] / one["ttft_s"]["min"], rel=0.05)
    assert "url" not in copy
    # As the published figures were measured; a warm-up before each length.
    assert len(serving.asked) == 6
    for body in serving.asked:
        asked = {key: body[key] for key in ("max_tokens", "temperature", "ignore_eos", "stream", "stream_options")}
        assert asked == {
            **{"max_tokens": 50, "temperature": 0, "ignore_eos": True, "stream": True},
            "stream_options": {"include_usage": True},
        }


def test_no_prompt_begins_as_another_and_each_is_as_long_as_asked_for(serve: Any, bench: Any) -> None:
    serving = serve()
    bench(prompt_tokens=[40, 3000], concurrency=3, runs=1)
    prompts = [body["prompt"] for body in serving.asked]
    assert sorted(map(len, prompts)) == [40] * 6 + [3000] * 6
    assert len({tuple(one[:8]) for one in prompts}) == 12
    # No repetition, which a draft would guess.
    assert len({tuple(one[at : at + 20]) for one in prompts[-1:] for at in range(0, 3000, 20)}) == 150


def test_streams_at_a_time(serve: Any, bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    serving = serve()
    most = 0
    answer = http.Handler.answer

    def watched(self: http.Handler, call: protocol.Call) -> None:
        nonlocal most
        most = max(most, serving.engine.running + 1)
        answer(self, call)

    monkeypatch.setattr(http.Handler, "answer", watched)
    (copy,) = bench(concurrency=4, tokens=200)
    (one,) = copy["measured"]
    assert (most, len(serving.asked)) == (4, 12)
    assert one["total_tok_s"]["median"] > 2.5 * one["decode_tok_s"]["median"]


def test_the_first_run_is_not_counted(serve: Any, bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    serving = serve()
    answer = http.Handler.answer

    def cold(self: http.Handler, call: protocol.Call) -> None:
        serving.engine.rate = RATE if serving.asked else RATE / 10
        answer(self, call)

    monkeypatch.setattr(http.Handler, "answer", cold)
    ((one,),) = [copy["measured"] for copy in bench()]
    assert one["decode_tok_s"]["min"] > RATE / 5


def test_a_cached_prefix_is_told(serve: Any, bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    serving = serve()
    render = metrics.render

    def cached(engine: Engine, model: str) -> str:
        return render(engine, model) + f'vllm:prefix_cache_hits_total{{engine="0"}} {10.0 * len(serving.asked)}\n'

    monkeypatch.setattr(metrics, "render", cached)
    ((one,),) = [copy["measured"] for copy in bench()]
    assert one["warnings"] == ["20 prompt tokens came from its prefix cache"]


def test_an_error_in_the_stream_is_told(serve: Any, bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    serve()
    monkeypatch.setattr(protocol.Call, "chunk", lambda *_, **__: {"error": {"message": "out of blocks"}})
    (copy,) = bench()
    assert "out of blocks" in copy["trouble"]


def test_a_draft_s_accepted_tokens(serve: Any, bench: Any) -> None:
    serve(draft=3)
    ((one,),) = [copy["measured"] for copy in bench(tokens=60)]
    assert one["accepted_per_draft"] == 2.0


def test_remembered_and_compared(serve: Any, bench: Any, node: HereNode, home: Path, apply: Any) -> None:
    serve()
    first, second, other = bench()[0], bench()[0], bench(tokens=51)[0]
    assert first["measured"][0]["before"] is None
    before = second["measured"][0]["before"]
    assert before["decode_tok_s"] == first["measured"][0]["decode_tok_s"]
    assert (before["release"], before["recipe"], before["engine_version"], before["driver"]) == (
        *(1, "fp8", "0.24.0"),
        "580.95.05",
    )
    assert other["measured"][0]["before"] is None, "another length is no comparison"
    file = Path(node.state_dir, "bench", "vllm.json")
    assert (file.stat().st_mode & 0o777, len(json.loads(file.read_text())["measured"])) == (0o600, 3)
    assert [one.name for one in file.parent.iterdir()] == ["vllm.json"]
    assert KEY not in file.read_text()
    assert apply("release_remove", home=str(home), service="vllm", check=True).result["removed"][-1] == str(file)
    assert file.exists()
    apply("release_remove", home=str(home), service="vllm")
    assert not file.exists()
    assert apply("release_remove", home=str(home), service="vllm").state == "ok"


def test_the_record_is_short_and_what_was_disturbed_is_no_measure(node: HereNode) -> None:
    conditions = {"prompt_tokens": 1, "tokens": 2, "concurrency": 1}
    for index in range(60):
        speed_record.add(node.state_dir, "a", {**conditions, "at": str(index), "warnings": ["others"] * (index > 57)})
    known = speed_record.read(node.state_dir, "a")
    assert [one["at"] for one in known] == [str(index) for index in range(10, 60)]
    assert (speed_record.before(known, conditions) or {})["at"] == "57"
    assert speed_record.before(known, {**conditions, "concurrency": 2}) is None
    for damaged in ("", "[]", '{"measured": [1]}', '{"measured": {}}'):
        Path(speed_record.path(node.state_dir, "a")).write_text(damaged)
        assert speed_record.read(node.state_dir, "a") == []


def test_check_sends_nothing(serve: Any, bench: Any, node: HereNode) -> None:
    serving = serve()
    serving.end()
    (copy,) = bench(check=True, prompt_tokens=[5, 6], concurrency=2)
    assert copy["trouble"] is None
    conditions = {"tokens": 50, "concurrency": 2, "runs": 2}
    assert copy["measured"] == [{"prompt_tokens": 5, **conditions}, {"prompt_tokens": 6, **conditions}]
    assert not Path(node.state_dir).exists()
    (copy,) = bench(check=True, prompt_tokens=[4047])
    assert "max_model_len 4,096" in copy["trouble"]


def test_a_prompt_that_does_not_fit(serve: Any, bench: Any) -> None:
    serving = serve()
    (copy,) = bench(prompt_tokens=[64, 4047])
    told = "a prompt of 4,047 tokens and 50 generated do not fit its max_model_len 4,096"
    assert copy["trouble"] == f"{told}: ask for a prompt of 4,046 at most"
    assert (copy["measured"], serving.asked) == ([], [])
    assert bench(prompt_tokens=[4046], runs=1)[0]["trouble"] is None


def test_what_can_t_be_measured_says_why_and_the_others_are(serve: Any, bench: Any, home: Path, apply: Any) -> None:
    serve("good")
    serve("dead").engine.dead.set()
    deploy(home, apply, "http://127.0.0.1:9", "gone")
    found = {one["service"]: one for one in bench()}
    assert found["good"]["trouble"] is None
    assert found["dead"]["trouble"] == ("it does not serve (sparkops-dead.service is inactive): /health: status 503")
    assert "it does not serve (sparkops-gone.service is inactive): /health: " in found["gone"]["trouble"]
    (none,) = bench(service="none")
    assert (none["trouble"], none["release"], none["measured"]) == ("nothing deployed", None, [])


def test_a_stalled_copy_ends_it_and_nothing_goes_on(serve: Any, bench: Any, node: HereNode) -> None:
    serving = serve()
    serving.engine.wedged.set()
    begun = time.monotonic()
    (copy,) = bench(patience=0.5, concurrency=2)
    assert time.monotonic() - begun < 3
    assert copy["trouble"] == "no token came for 0.5 s: it has stalled, or --patience is too short"
    assert not Path(node.state_dir).exists()
    serving.engine.wedged.clear()
    until_idle(serving)
    assert serving.engine.finished["abort"] == 2


def until_idle(serving: Serving) -> None:
    deadline = time.monotonic() + 5
    while serving.engine.running:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_who_is_interrupted_leaves_no_request_behind(serve: Any, bench: Any, node: HereNode) -> None:
    serving = serve()

    class Gone(BaseException):
        pass

    def pause(seconds: float) -> None:
        time.sleep(seconds / 2)
        if serving.engine.running:
            raise Gone

    node.pause = pause  # type: ignore[method-assign]
    with pytest.raises(Gone):
        bench(tokens=4000)
    until_idle(serving)
    assert serving.engine.generated_tokens < 1000
    assert not Path(node.state_dir).exists()


def test_an_answer_that_is_cut_short_is_no_figure(serve: Any, bench: Any) -> None:
    serving = serve()
    threading.Timer(0.3, serving.engine.stopping.set).start()
    (copy,) = bench(tokens=2000)
    assert copy["trouble"].startswith("/v1/completions: the answer was cut short")
    assert "instead of 2000" in copy["trouble"]
    assert copy["measured"] == []


def test_a_refusal_is_told_with_its_reason(serve: Any, bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    serve()

    def refuse(*_: Any) -> None:
        raise protocol.BadRequest("no such thing")

    monkeypatch.setattr(http.Handler, "answer", refuse)
    (copy,) = bench()
    assert copy["trouble"].startswith("/v1/completions: status 400 ")
    assert "no such thing" in copy["trouble"]


def test_others_that_use_it_meanwhile_are_told(
    serve: Any, bench: Any, node: HereNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    serving = serve()
    serving.engine.running += 2
    answer = http.Handler.answer

    def more(self: http.Handler, call: protocol.Call) -> None:
        serving.engine.prompt_tokens += 100
        answer(self, call)

    monkeypatch.setattr(http.Handler, "answer", more)
    ((one,),) = [copy["measured"] for copy in bench()]
    assert one["warnings"] == [
        "others were using it: 2 running before",
        "others were using it: 300 more prompt tokens meanwhile",
    ]
    serving.engine.running -= 2
    assert speed_record.read(node.state_dir, "vllm")[0]["warnings"] == one["warnings"]


@pytest.mark.parametrize("wrong", [{"prompt_tokens": []}, {"prompt_tokens": [0]}, {"tokens": 1}, {"runs": 0}])
def test_arguments_that_measure_nothing(bench: Any, wrong: dict[str, Any]) -> None:
    with pytest.raises(Failure, match="must be 1 at least"):
        bench(**wrong)
    with pytest.raises(Failure, match="patience"):
        bench(patience=0)


def test_figures() -> None:
    class Seen:
        def __init__(self, sent: float, first: float, ended: float) -> None:
            self.sent, self.first, self.ended = sent, first, ended
            self.usage = {"prompt_tokens": 100, "completion_tokens": 11}

    streams: Any = [Seen(0.0, 1.0, 2.0), Seen(0.0, 2.0, 4.0)]
    assert speed.figures(streams[:1]) == {
        **{"decode_tok_s": 10.0, "total_tok_s": 5.5},
        **{"prefill_tok_s": 100.0, "ttft_s": 1.0},
    }
    assert speed.figures(streams) == {
        **{"decode_tok_s": 7.5, "total_tok_s": 5.5},
        **{"prefill_tok_s": 100.0, "ttft_s": 1.5},
    }
    assert speed.median([3.0, 1.0, 2.0]) == 2.0
    runs = [speed.figures(streams[:1]), speed.figures(streams)]
    assert speed.summary(runs)["decode_tok_s"] == {"median": 8.75, "min": 7.5, "max": 10.0}
