"""Engines, installed from their wheels, and checkpoints for them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sparkops.lab.standin import build, checkpoints, patching
from tests.lab.copies import Copy


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    checkpoints.seed(folder)
    return folder


@pytest.fixture(scope="session")
def engines(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The command of an engine as installed, `stock`, and of one with the patch, `guarded`."""
    lab = tmp_path_factory.mktemp("lab")
    build(lab, cache=lab / "cache")
    commands = {}
    for name in ("stock", "guarded"):
        venv = lab / name
        uv = [sys.executable, "-m", "uv", "--cache-dir", str(lab / "uv")]
        subprocess.run([*uv, "venv", "-q", "-p", sys.executable, venv], check=True)
        where: list[str | Path] = ["--no-index", "--find-links", lab / "wheels", "-p", venv / "bin/python"]
        lock = lab / "engines/vllm-0.24.0.lock"
        subprocess.run([*uv, "pip", "install", "-q", *where, "--require-hashes", "-r", lock], check=True)
        commands[name] = venv / "bin/vllm"
    (file,) = (lab / "guarded").glob(f"lib/python*/site-packages/{patching.FILE}")
    source = file.read_text()
    file.unlink()  # a hard link to uv's cache, as `stock` has
    file.write_text(patching.guarded(source))
    return commands


@pytest.fixture
def serve(engines: dict[str, Path], models: Path, tmp_path: Path) -> Iterator[Callable[..., Copy]]:
    copies: list[Copy] = []

    def start(model: str, *flags: str, engine: str = "stock", port: int | None = None, **env: str) -> Copy:
        argv = [str(models / model), *flags]
        copies.append(Copy(engines[engine], argv, env, tmp_path / f"{len(copies)}.log", port))
        return copies[-1]

    yield start
    for copy in copies:
        copy.process.kill()
        copy.process.wait()
