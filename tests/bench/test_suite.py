"""The words of `make bench` and its arithmetic; how fast anything is, is no test."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.bench import goals, suite
from tests.bench.measure import Command, Cost
from tests.bench.peers import ALL, LIMIT, OURS
from tests.bench.rounds import Runs, Table, rounds


def test_words() -> None:
    assert suite.parse("") == (list(suite.FIGURES), None, ALL, suite.ROUNDS)
    chosen = suite.parse("converged,N=1+16,peers=sparkops+ssh true,rounds=2,cold")
    assert chosen == (["converged", "cold"], (1, 16), (OURS, LIMIT), 2)
    for word in ("fast", "peers=chef", "converged=3"):
        with pytest.raises(SystemExit, match="no word of WHAT"):
            suite.parse(word)


def costs(*walls: float) -> Runs:
    return Runs([Cost(wall, wall / 2, 1.0, 0.0, 0) for wall in walls])


def test_ratios_are_of_the_same_round() -> None:
    table = Table({OURS: costs(2.0, 4.0, 9.0), LIMIT: costs(1.0, 4.0, 3.0)})
    assert table.ratio(OURS, LIMIT) == (1.0, 2.0, 3.0)
    assert table.ratio(OURS, "ansible") is None
    assert table.quiet()


def test_goals() -> None:
    results = {
        "converged": {
            "N=16": {OURS: costs(2.0).document(), LIMIT: costs(1.0).document(), "ansible": costs(60.0).document()},
            "N=64": {OURS: costs(4.0).document(), LIMIT: costs(3.0).document()},
        },
        "memory": {"N=16": {OURS: 10.0, "ansible": 20.0}, "N=64": {OURS: 12.0}},
    }
    found = {name: (ratio, good) for name, ratio, _, _, good in goals.reached(results)}
    assert found == {
        "converged, N=16": (2.0, True),
        "converged, N=64": (4 / 3, True),
        "converged, N=16: ansible / ours": (30.0, False),
        "peak PSS, N=64 / N=16": (1.2, True),
        "peak PSS, N=16: ours / ansible's": (0.5, False),
        "controller's CPU a host more / ssh's": (1.0, True),
    }


@pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")
def test_a_command_that_fails_ends_it(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="last words"):
        rounds({"x": Command(["sh", "-c", "echo last words; exit 3"], {})}, 1, tmp_path / "log")


@pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")
def test_rounds(tmp_path: Path) -> None:
    seen: list[str] = []
    commands = {name: Command(["true"], {}) for name in "ab"}
    table = rounds(commands, 2, tmp_path / "log", prepare=seen.append)
    assert sorted(seen) == list("aaabbb")
    assert {name: len(runs.costs) for name, runs in table.runs.items()} == {"a": 2, "b": 2}
