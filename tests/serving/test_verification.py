from __future__ import annotations

from typing import Any

import pytest

from sparkops.serving.verification import Answer, Check, checks

FOUND: dict[str, Any] = {
    "release": 3,
    "confirmed": True,
    "recipe": {"name": "fp8", "max_model_len": 4096, "model_revision": "abc"},
    "drift": [],
    "engine": "vllm-1",
    "contents": {"packages": 9, "problems": []},
    "patches": {"guard": "applied"},
    "checkpoint": {"path": "/m", "revision": "abc"},
}
SERVING: dict[str, Any] = {"model": "m", "max_model_len": 4096}


def rows(found: dict[str, Any] | None = None, **answers: Answer) -> dict[str, Check]:
    told = {
        "serving_drift": Answer("ok", "", {**FOUND, **(found or {})}),
        "checkpoint_present": Answer("ok", "2 files, 10 tensors", {}),
        "http_ready": Answer("ok", "", SERVING),
        "log_expect": Answer("ok", "", {}),
        **answers,
    }
    return {one.check: one for one in checks(told)}


def test_all_is_well() -> None:
    assert [(one.check, one.state) for one in rows().values()] == [
        (name, "pass")
        for name in ("release", "unit", "release files", "engine", "patches", "checkpoint", "serving", "log")
    ]


@pytest.mark.parametrize(
    ("found", "check", "state", "says"),
    [
        ({"confirmed": False}, "release", "fail", "not confirmed"),
        ({"drift": ["unit", "unit drop-in x.conf"]}, "unit", "fail", "edited: unit, unit drop-in x.conf"),
        ({"drift": ["run", "patch guard edited"]}, "release files", "fail", "edited: run"),
        ({"drift": None}, "unit", "unknown", "has not kept"),
        ({"drift": None}, "release files", "unknown", "has not kept"),
        ({"contents": None}, "engine", "fail", "vllm-1 is gone"),
        ({"contents": {"packages": 9, "problems": ["a is gone", "b was edited"]}}, "engine", "fail", "a is gone; b"),
        ({"contents": None, "engine": None, "adopted": "/venv"}, "engine", "pass", "/venv is adopted"),
        ({"contents": None, "adopted": "/venv", "drift": ["engine gone"]}, "engine", "fail", "/venv is gone"),
        ({"patches": {"guard": "taken out"}}, "patches", "fail", "guard taken out"),
        ({"patches": {}}, "patches", "pass", "none"),
        ({"patches": None}, "patches", "unknown", "no engine"),
        ({"checkpoint": {"path": "/m", "revision": "def"}}, "checkpoint", "fail", "revision def, the recipe names abc"),
        ({"checkpoint": {"path": "/m", "revision": "abcdef"}}, "checkpoint", "pass", "2 files"),
        ({"checkpoint": {"path": "/m", "revision": None}}, "checkpoint", "pass", "2 files"),
    ],
)
def test_what_the_node_is(found: dict[str, Any], check: str, state: str, says: str) -> None:
    one = rows(found)[check]
    assert (one.state, says in one.detail) == (state, True), one


@pytest.mark.parametrize(
    ("module", "answer", "check", "state"),
    [
        ("checkpoint_present", Answer("ignored", "config.json is missing", {}), "checkpoint", "fail"),
        ("http_ready", Answer("ignored", "no answer", {}), "serving", "fail"),
        ("http_ready", Answer("ok", "", {**SERVING, "max_model_len": 2048}), "serving", "fail"),
        ("http_ready", Answer("skipped", "", {}), "serving", "unknown"),
        ("log_expect", Answer("ok", "the journal no longer has it", {"missing": ["x"]}), "log", "unknown"),
        ("log_expect", Answer("ignored", "did not log", {}), "log", "fail"),
    ],
)
def test_what_the_copy_says(module: str, answer: Answer, check: str, state: str) -> None:
    one = rows(None, **{module: answer})[check]
    assert (one.state, answer.msg in one.detail) == (state, True), one


def test_nothing_deployed_and_nothing_found_out() -> None:
    assert list(rows({"release": None}).values()) == [Check("release", "fail", "nothing is deployed")]
    assert checks({"serving_drift": Answer("failed", "no python", {})}) == [Check("release", "fail", "no python")]
