"""Commands that do not end as one would like."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sparkops.node import process
from sparkops.node.api import Completed, Failure
from sparkops.node.frames import Closed
from sparkops.node.jobs import start_time

# It closes its pipes and runs on.
SILENT = "exec >&- 2>&-; echo $$ >pid; exec sleep 20"


def shell(script: str, cwd: Path, timeout: float | None = None, check: Callable[[], None] = lambda: None) -> Completed:
    argv = ["sh", "-c", script]
    return process.run(argv, stdin="", cwd=str(cwd), env=dict(os.environ), timeout=timeout, check=check, wake=None)


def test_without_its_pipes_a_program_still_has_a_time_limit(tmp_path: Path) -> None:
    begun = time.monotonic()
    with pytest.raises(Failure, match="did not end within"):
        shell(SILENT, tmp_path, timeout=0.5)
    assert time.monotonic() - begun < 5
    assert start_time(int((tmp_path / "pid").read_text())) is None


def test_without_its_pipes_a_program_still_ends_with_its_controller(tmp_path: Path) -> None:
    begun = time.monotonic()

    def check() -> None:
        if time.monotonic() - begun > 0.5:
            raise Closed

    with pytest.raises(Closed):
        shell(SILENT, tmp_path, check=check)
    assert time.monotonic() - begun < 5
    assert start_time(int((tmp_path / "pid").read_text())) is None


def test_without_its_pipes_a_program_is_waited_for(tmp_path: Path) -> None:
    done = shell("echo said; exec >&- 2>&-; sleep 0.3; exit 7", tmp_path)
    assert (done.rc, done.out) == (7, "said\n")


def test_a_member_that_ignores_term_does_not_survive_its_leader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "GRACE", 0.5)
    # The leader ends at TERM; its child ignores it.
    script = (
        "sh -c 'trap \"\" TERM; echo $$ >pid; while :; do sleep 0.1; done' & while [ ! -s pid ]; do sleep 0.02; done"
    )
    with pytest.raises(Failure):
        shell(f"{script}; sleep 20", tmp_path, timeout=0.6)
    limit = time.monotonic() + 3
    while start_time(int((tmp_path / "pid").read_text())) is not None:
        assert time.monotonic() < limit, "it is still there"
        time.sleep(0.02)


def test_a_member_that_ends_at_term_has_its_time(tmp_path: Path) -> None:
    script = "sh -c 'trap \"sleep 0.3; echo >clean; exit\" TERM; echo >up; while :; do sleep 0.05; done' & "
    with pytest.raises(Failure):
        shell(f"{script} while [ ! -e up ]; do sleep 0.02; done; exec sleep 20", tmp_path, timeout=0.6)
    assert (tmp_path / "clean").exists()
