"""The shipped locks: hashes for everything, nothing of where they were made."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from sparkops.node.venv import package_count
from sparkops.recipes.load import Catalogue
from tests.recipes.wheelfile import INDEX

ENGINES = {"vllm-0.24.0": 189, "vllm-0.26.0": 192}
MACHINES = ["aarch64", "x86_64"]


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", ENGINES)
def test_every_pin_has_hashes(name: str, machine: str) -> None:
    text = Path(Catalogue().engine(name).lock(machine)).read_text()
    pins = [pin for pin in re.sub(r" \\\n\s+", " ", text).splitlines() if pin]
    assert len(pins) == package_count(text.encode()) == ENGINES[name]
    for pin in pins:
        assert re.fullmatch(r"[a-z0-9-]+==[\w.+!]+(?: --hash=sha256:[0-9a-f]{64})+", pin), pin
    assert f"{name.replace('-', '==')} " in text
    assert "torch==2.11.0 " in text


@pytest.mark.network
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", ENGINES)
def test_wheels_of_the_index_satisfy_them(name: str, machine: str, tmp_path: Path) -> None:
    lock = Catalogue().engine(name).lock(machine)
    uv = Path(sys.executable).with_name("uv")
    command: list[str | Path] = [
        uv,
        "pip",
        "compile",
        lock,
        "-o",
        tmp_path / "again",
        "--no-config",
        "--no-deps",
        "--generate-hashes",
    ]
    command += ["--only-binary", ":all:", "--python-version", "3.12", "--python-platform", f"{machine}-manylinux_2_39"]
    command += ["--default-index", INDEX, "--no-header", "--no-annotate", "--quiet"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    assert package_count((tmp_path / "again").read_bytes()) == ENGINES[name]
