"""Two operators at once: the second is told who the first is."""

from __future__ import annotations

import getpass
import json
from pathlib import Path

import pytest

from tests.e2e.interrupting import Started
from tests.e2e.nodes import Nodes, eventually

pytestmark = pytest.mark.lab


def test_the_second_run_ends_with_5_and_names_the_first(nodes: Nodes, tmp_path: Path, play: Path) -> None:
    slow = tmp_path / "slow.yml"
    slow.write_text("- hosts: spark-1\n  gather_facts: false\n  tasks:\n    - command: sleep 14.25\n")
    first = Started(nodes, tmp_path / "log", "play", str(slow))
    eventually(lambda: nodes.lab("exec", "spark-1", "--", "pgrep", "-f", "sleep 14.25$", check=False).rc == 0)
    second = nodes.sparkops("play", str(play), rc=5)
    plain = nodes.plain("play", str(play))
    # A check takes no lease.
    nodes.sparkops("play", str(play), "--check")
    assert first.process.wait(30) == 0
    assert json.loads(first.said.splitlines()[-1])["exit_code"] == 0

    (end,) = [one for one in second.events if one["event"] == "host_end" and one["host"] == "spark-1"]
    for said in (end["msg"], plain.out):
        assert f"{getpass.getuser()}@" in said
        # The verb alone: other words may be secrets.
        assert "(sparkops play, since" in said
    assert plain.rc == 5
    # The other node went on.
    assert second.recap["spark-2"]["ok"] == 1
    # The lease ended with the first run.
    nodes.sparkops("play", str(play))
