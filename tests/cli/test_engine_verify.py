"""`sparkops engine verify` on this machine as a node."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from sparkops.cli.main import root
from tests.node.modules.test_engine_verify import site as site


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    inventory = tmp_path / "hosts.yml"
    host = {"ansible_connection": "local", "sparkops_home": str(tmp_path)}
    inventory.write_text(json.dumps({"all": {"hosts": {"here": host}}}))
    return ["-i", str(inventory), "engine", "verify"]


def test_as_locked(words: list[str], site: Path) -> None:
    done = CliRunner().invoke(root, words)
    assert (done.exit_code, done.stdout) == (0, "here  vllm-0.24.0-abc  3 packages, as locked\n")


def test_a_problem_is_told_and_counts(words: list[str], site: Path) -> None:
    (site / "einops-0.8.2.dist-info").rename(site / "einops-0.7.0.dist-info")
    (site / "model.py").write_text("edited")
    done = CliRunner().invoke(root, [*words, "here"], standalone_mode=False)
    assert done.return_value == 1
    told = ["einops is 0.7.0, locked is 0.8.2", "model.py is not as the patch guard left it"]
    assert done.stdout.splitlines() == [
        "here  vllm-0.24.0-abc  3 packages, not as locked",
        *(f"  {line}" for line in told),
    ]
    answer = json.loads(CliRunner().invoke(root, [*words, "--json"]).stdout)
    assert answer["here"]["engines"][0]["problems"] == told


def test_no_engines(words: list[str]) -> None:
    done = CliRunner().invoke(root, words)
    assert (done.exit_code, done.stdout) == (0, "here  no engines\n")
