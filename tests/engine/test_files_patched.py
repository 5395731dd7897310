"""The patch on the real files, on a node: in the engines that were built, and in environments of the user's own."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.engine.node import NODE, EngineNode
from tests.recipes.test_shipped_patch import FACTS, NAME, shipped
from tests.recipes.wheelfile import from_wheel

pytestmark = [pytest.mark.engine, pytest.mark.lab, pytest.mark.network, pytest.mark.timeout(1800)]

BEFORE, AFTER = FACTS["0.24.0"]
PLAY = f"""
- hosts: {NODE}
  gather_facts: false
  tasks:
    - pinned_patch:
        name: {NAME}
        root: ~/adopted
        state: "{{{{ state | default('present') }}}}"
"""


def test_one_engine_is_guarded_and_the_other_and_the_cache_are_pristine(serving: EngineNode) -> None:
    # Built by the deploys of the matrix, or now.
    guarded = serving.recipe("guarded-flag-text", patches=[{"name": NAME, "when": "always"}], checkpoint=None)
    with serving.report.case("provision a guarded engine", "beside the stock one, from uv's cache"):
        serving.sparkops("provision", NODE, "--recipe", guarded)
    root = serving.nodes.root(NODE) / "opt/sparkops"
    found = {
        hashlib.sha256(path.read_bytes()).hexdigest(): path
        for path in root.glob(f"engines/*/lib/python3*/site-packages/{shipped().file}")
    }
    assert found.keys() == {BEFORE, AFTER}
    orig = found[AFTER].with_name("qwen3_5.py.orig")
    assert hashlib.sha256(orig.read_bytes()).hexdigest() == BEFORE
    assert not found[BEFORE].with_name("qwen3_5.py.orig").exists()
    (cached,) = root.glob(f"cache/uv/archive-v0/*/{shipped().file}")
    assert hashlib.sha256(cached.read_bytes()).hexdigest() == BEFORE
    engines = serving.document("engine", "verify", NODE)[NODE]["engines"]
    assert [one["problems"] for one in engines] == [[], []]


@pytest.mark.parametrize("version", FACTS)
def test_applied_again_absent_and_an_edit_in_the_way(serving: EngineNode, tmp_path: Path, version: str) -> None:
    before, after = FACTS[version]
    wheel = f"vllm-{version}-cp38-abi3-manylinux_2_28_x86_64.whl"
    pristine = from_wheel("vllm", wheel, shipped().file).decode()
    play = tmp_path / "patch.yml"
    play.write_text(PLAY)
    file = f"adopted/{shipped().file}"
    serving.as_spark(f"rm -rf adopted; mkdir -p $(dirname {file}); cat > {file}", stdin=pristine)

    def look() -> str:
        return serving.as_spark(f"sha256sum {file}").split()[0]

    with serving.report.case(f"patch qwen3_5.py of {version}", "applied, again, taken back; an edit is left alone"):
        assert look() == before
        assert serving.sparkops("play", str(play), "--check").count("changed") == {NODE: 1}
        assert look() == before
        assert serving.sparkops("play", str(play)).count("changed") == {NODE: 1}
        assert look() == after
        assert serving.sparkops("play", str(play)).count("changed") == {NODE: 0}
        assert serving.sparkops("play", str(play), "-e", "state=absent").count("changed") == {NODE: 1}
        assert look() == before
        serving.as_spark(f"sed -i s/rms_norm_eps/rms_eps/ {file}")
        edited = look()
        failed = serving.sparkops("play", str(play), rc=1).failure(NODE)
        assert "is neither of the files that the patch" in failed["msg"]
        assert "hunk 1 of 2" in failed["msg"]
        assert look() == edited
