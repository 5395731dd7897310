"""What a run costs on the wire, counted on both ends."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import counting
from tests.e2e.nodes import Nodes, command

pytestmark = pytest.mark.lab

NODES = ("spark-1", "spark-2")
LOUD = "mkdir -p /etc/ssh/sshd_config.d; echo LogLevel VERBOSE > /etc/ssh/sshd_config.d/loud.conf; systemctl reload ssh"
QUIET = "rm /etc/ssh/sshd_config.d/loud.conf; systemctl reload ssh"


@pytest.fixture
def loud(nodes: Nodes) -> Iterator[Nodes]:
    """sshd logs each session that is opened."""
    for node in NODES:
        nodes.on(node, "sh", "-c", LOUD)
    yield nodes
    for node in NODES:
        nodes.on(node, "sh", "-c", QUIET)


def logged(nodes: Nodes, node: str) -> list[str]:
    return nodes.on(node, "journalctl", "-t", "sshd", "--no-pager", "-o", "cat").splitlines()


@pytest.mark.parametrize(
    ("most", "words"),
    [(3, ("provision", "--all-nodes")), (3, ("deploy", "fp8", "--all-nodes"))],
    ids=["provision", "deploy"],
)
def test_a_converged_run(loud: Nodes, tmp_path: Path, password_file: str, most: int, words: tuple[str, ...]) -> None:
    before = {node: len(logged(loud, node)) for node in NODES}
    run = ["--json", "-i", str(loud.inventory), *words, "--become-password-file", password_file]
    done = command(loud.inside(sys.executable, "-m", counting.__name__, str(tmp_path / "counts"), *run))
    assert done.rc == 0, done.err
    assert done.count("changed") == {"spark-1": 0, "spark-2": 0}
    counts = json.loads((tmp_path / "counts").read_text())
    assert sorted(host for host, _, _ in counts["sessions"]) == ["spark-1", "spark-2"]
    assert counts["channels"] == ["session", "session"]
    for host, waits, turns in counts["sessions"]:
        assert 1 <= turns <= most, (host, waits, turns)
        assert waits == turns
    for node in NODES:
        lines = logged(loud, node)[before[node] :]
        assert len([line for line in lines if "Accepted publickey for spark" in line]) == 1
        assert len([line for line in lines if "Starting session:" in line]) == 1
