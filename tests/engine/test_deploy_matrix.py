"""FACTS: what stock and guarded code do with --language-model-only and with visual tensors, by deploys on a node.

A copy that does not start is named by doctor while it fails, and the deploy goes back to what served before.
"""

from __future__ import annotations

import itertools
import subprocess
import time
from typing import Any

import pytest

from tests.e2e.nodes import Done
from tests.engine.node import NODE, EngineNode

pytestmark = [pytest.mark.engine, pytest.mark.lab, pytest.mark.network, pytest.mark.timeout(1800)]

PATCH = "qwen3_5-language-only-guard"
ARGS = ["--enforce-eager", "--max-num-seqs", "8", "--block-size", "128"]
# (guarded, flag, visual tensors) -> what doctor calls it. All others serve.
FAILS = {
    (False, False, False): ("visual-missing", "Following weights were not initialized from checkpoint"),
    (True, False, False): ("visual-missing", "Following weights were not initialized from checkpoint"),
    (True, True, True): ("visual-unexpected", "There is no module or parameter named 'visual' in Qwen3_5Moe"),
}


def name(guarded: bool, flag: bool, visual: bool) -> str:
    return f"{'guarded' if guarded else 'stock'}-{'flag' if flag else 'plain'}-{'visual' if visual else 'text'}"


def declared(node: EngineNode, guarded: bool, flag: bool, visual: bool) -> str:
    """The recipe of a case."""
    return node.recipe(
        name(guarded, flag, visual),
        model="sparkops/tiny-visual" if visual else "sparkops/tiny",
        model_source=f"~/models/hf/{'tiny-visual' if visual else 'tiny'}",
        patches=[{"name": PATCH, "when": "always" if guarded else "never"}],
        args=[*ARGS, *(["--language-model-only"] if flag else [])],
        checkpoint=None,
    )


@pytest.mark.parametrize(
    ("guarded", "flag", "visual"),
    [case for case in itertools.product([False, True], repeat=3) if case not in {(False, True, False), *FAILS}],
)
def test_it_serves(serving: EngineNode, guarded: bool, flag: bool, visual: bool) -> None:
    recipe = declared(serving, guarded, flag, visual)
    with serving.report.case(f"deploy {recipe}", "serves"):
        run = serving.sparkops("deploy", recipe, NODE)
    assert run.count("failed") == {NODE: 0}
    assert serving.token()
    assert serving.doctor()["findings"] == []


@pytest.mark.parametrize(("guarded", "flag", "visual"), FAILS)
def test_it_fails_is_explained_and_undone(serving: EngineNode, guarded: bool, flag: bool, visual: bool) -> None:
    before = serving.status()["release"]
    identity, line = FAILS[guarded, flag, visual]
    recipe = declared(serving, guarded, flag, visual)
    case = serving.report.case(f"deploy {recipe}", f"doctor: {identity}; undone")
    with case, serving.running("deploy", recipe, NODE) as (process, out):
        first = diagnosed(serving, process)
        assert process.wait() == 1
        out.seek(0)
        run = Done(1, out.read(), "")
    assert (first["id"], first["severity"]) == (identity, "failure")
    assert any(line in quote for quote in first["evidence"])
    said = run.failure(NODE)["msg"]
    assert said.startswith(f"{recipe} did not get healthy")
    # doctor has counted the checkpoint's visual tensors too: " (33 of 193)".
    assert first["cause"].partition(" (")[0].rstrip(".") in said
    assert f"release {before} serves again" in said
    assert serving.status()["release"] == before
    assert serving.token()


def diagnosed(node: EngineNode, process: subprocess.Popen[str]) -> dict[str, Any]:
    """What doctor names first while the copy that is being deployed fails."""
    while process.poll() is None:
        findings = node.doctor()["findings"]
        if causes := [one for one in findings if one["severity"] == "failure" and not one["consequence"]]:
            cause: dict[str, Any] = causes[0]
            return cause
        time.sleep(2)
    raise AssertionError("doctor named no cause while the deploy ran")
