"""Detached jobs: what they leave behind."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from sparkops.node.jobs import Job


def test_a_folder_with_a_file_of_unknown_name_is_cleared(tmp_path: Path, node: Any) -> None:
    node.state_dir = str(tmp_path)
    folder = tmp_path / "jobs/build"
    for _ in range(2):
        folder.mkdir(parents=True)
        (folder / "result.new").write_text("{")
        (folder / ".nfs0001").write_text("")
        assert node.job("build", lambda _: {"good": True}) == {"good": True}
        assert list((tmp_path / "jobs").iterdir()) == []


def test_what_cannot_be_removed_is_out_of_the_way(tmp_path: Path, node: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    node.state_dir = str(tmp_path)
    (tmp_path / "jobs/build").mkdir(parents=True)

    def busy(_: str, ignore_errors: bool) -> None:
        assert ignore_errors

    monkeypatch.setattr(shutil, "rmtree", busy)
    for _ in range(2):
        assert node.job("build", lambda _: {"good": True}) == {"good": True}
    assert not (tmp_path / "jobs/build").exists()


def test_a_job_that_nobody_waits_for_leaves_nothing(tmp_path: Path, node: Any) -> None:
    node.state_dir = str(tmp_path)
    go = tmp_path / "go"

    def work(_: Any) -> dict[str, Any]:
        while not go.exists():
            time.sleep(0.01)
        return {}

    node.start_job("trial-vllm-1", work)
    job = Job(str(tmp_path), "trial-vllm-1")
    limit = time.monotonic() + 5
    while not job.running() and time.monotonic() < limit:
        time.sleep(0.01)
    assert job.running()
    go.touch()
    limit = time.monotonic() + 5
    while list((tmp_path / "jobs").iterdir()):
        assert time.monotonic() < limit, "it is still there"
        time.sleep(0.01)
