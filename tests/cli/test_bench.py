"""`sparkops bench`: what it asks for, prints of what nodes have told, and its exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from sparkops.cli import bench, collect
from sparkops.cli.collect import Found
from sparkops.cli.main import root
from sparkops.errors import InputError
from sparkops.events import Progress
from tests.serving.test_bench import COPY, ONE, PUBLISHED, spread

GONE = Found(trouble="no route to host")
BEFORE = {**COPY, "at": "2026-11-29T10:00:00Z", "release": 1, **spread(decode_tok_s=50.0)}


def told(*copies: dict[str, Any]) -> Found:
    return Found({"serving_bench": {"copies": list(copies), "state": "ok"}})


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "hosts.yml").write_text("all:\n  hosts:\n    a: {}\n    b: {}\n")

    def run(found: dict[str, Found], code: int, *words: str) -> Result:
        monkeypatch.setattr(collect, "collect", lambda *_, **__: (found, code))
        argv = ["-i", str(tmp_path / "hosts.yml"), "bench", *words]
        return CliRunner().invoke(root, argv, standalone_mode=False, obj={})

    return run


def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *words: str) -> tuple[dict[str, Any], bool]:
    """The playbook's variables, and whether it is check mode."""
    seen: list[Any] = []
    (tmp_path / "hosts.yml").write_text("all:\n  hosts:\n    a: {}\n")

    def fake(*given: Any, **_: Any) -> tuple[dict[str, Found], int]:
        seen.append(given)
        return {"a": told(COPY)}, 0

    monkeypatch.setattr(collect, "collect", fake)
    argv = ["-i", str(tmp_path / "hosts.yml"), "bench", "a", *words]
    done = CliRunner().invoke(root, argv, standalone_mode=False, obj={})
    if done.exception:
        raise done.exception
    ((_, _, values, how),) = seen
    return values, how.check


def test_what_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values, check = asked(tmp_path, monkeypatch)
    assert (values, check) == (
        {"service": None, "prompt_tokens": [2048], "tokens": 256, "runs": 3, "concurrency": 1, "patience": 300.0},
        False,
    )
    words = "--prompt-tokens 512,2048 --prompt-tokens 8192,512 --tokens 64 --runs 1 --concurrency 4 --check"
    values, check = asked(tmp_path, monkeypatch, *words.split(), "--patience", "5", "--service", "side")
    assert (values, check) == (
        {
            "service": "side",
            "prompt_tokens": [512, 2048, 8192],
            "tokens": 64,
            "runs": 1,
            "concurrency": 4,
            "patience": 5,
        },
        True,
    )
    for wrong in ("--prompt-tokens=0", "--prompt-tokens=2k", "--prompt-tokens=", "--tokens=1", "--patience=0"):
        with pytest.raises(click.BadParameter):
            asked(tmp_path, monkeypatch, wrong)


def test_nodes_are_named(ask: Any) -> None:
    assert isinstance(ask({}, 0).exception, InputError)


def test_the_table(ask: Any) -> None:
    copy = {**COPY, "published": PUBLISHED, "bytes_per_token": 5_460_000_000}
    first = {**ONE, "decode_tok_s": {"median": 40.0, "min": 39.5, "max": 40.25}}
    second = {**ONE, "before": BEFORE, "prompt_tokens": 8192, "accepted_per_draft": 1.5}
    found = {"a": told({**copy, "measured": [first, second], "trouble": "it\x1b broke"}), "b": told()}
    head, one, two, broken, none = ask(found, 0, "all").output.splitlines()
    assert head.split()[:6] == ["node", "service", "recipe", "prompt", "tokens", "streams"]
    assert " ".join(one.split()) == (
        "a vllm fp8 2,048 256 1 40.00 (39.50-40.25) 30.0 4000 0.500 - 1.04x of 38.27 - 0.80x of 50"
    )
    assert " ".join(two.split()) == (
        "a vllm fp8 8,192 256 1 40.00 30.0 4000 0.500 1.50 - 0.80x - the last was 2026-11-29T10:00:00Z: release 1 -> 2"
    )
    assert broken.split()[:4] + broken.split()[-2:] == ["a", "vllm", "fp8", "-", "it", "broke"]
    assert none.split()[:3] + none.split()[-2:] == ["b", "-", "-", "nothing", "deployed"]
    said = {"prompt_tokens": 2048, "tokens": 256, "concurrency": 1, "runs": 3}
    line = ask({"a": told({**COPY, "measured": [said]})}, 0, "all", "--check").output.splitlines()[1]
    assert line.endswith("would be asked 4 times, once to warm up")


def test_one_document(ask: Any) -> None:
    found = {"a": told(COPY), "b": GONE}
    document = json.loads(ask(found, 4, "all", "--json").output)
    assert document["exit_code"] == 4
    assert document["nodes"]["b"] == {"copies": None, "trouble": "no route to host"}
    (copy,) = document["nodes"]["a"]["copies"]
    assert copy["measured"][0]["decode_tok_s"] == {"median": 40.0, "min": 40.0, "max": 40.0}
    assert (copy["measured"][0]["published"], copy["measured"][0]["ceiling"]) == ([], None)


@pytest.mark.parametrize(
    ("found", "code", "wanted"),
    [
        (told(COPY), 0, 0),
        (told({**COPY, "trouble": "stalled"}), 0, 1),
        (told({**COPY, "trouble": "stalled"}), 4, 1),
        (told({**COPY, "trouble": "stalled"}), 130, 130),
        (told(), 0, 1),
        (GONE, 4, 4),
    ],
)
def test_exit_code(ask: Any, found: Found, code: int, wanted: int) -> None:
    assert ask({"a": found}, code, "all").return_value == wanted
    assert json.loads(ask({"a": found}, code, "all", "--json").output)["exit_code"] == wanted


def test_how_far_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    bench._tell(Progress("a", "t", 1, 4, "runs", "vllm, 2,048 prompt tokens: run 1 of 3"))
    assert capsys.readouterr().err == "a: vllm, 2,048 prompt tokens: run 1 of 3\n"
