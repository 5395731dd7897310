"""What a machine with an H200, driver 580.159.04 and torch 2.11.0+cu130 said to smoke.py (2026-11-30), said again.

`said/` is what `smoke.py --save` kept there; but for the builder's name nothing in it was edited.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from sparkops.node import venv
from tests.gpu.smoke import QUESTIONS

SAID = Path(__file__).with_name("said")
SMOKE = Path(__file__).with_name("smoke.py")
VERSION = "580.159.04"


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A PATH whose nvidia-smi says what the real one did, and ends as it did."""
    cases = ""
    for name, words in QUESTIONS.items():
        file = SAID / f"nvidia-smi-{name}.txt"
        cases += f"'{words}') head -n -1 '{file}'; exit $(tail -n 1 '{file}' | cut -c6-);;\n"
    script = tmp_path / "nvidia-smi"
    script.write_text(f'#!/bin/sh\ncase "$*" in\n-L) echo GPU 0; exit;;\n{cases}esac\nexit 64\n')
    script.chmod(0o755)
    return f"{tmp_path}:/usr/local/bin:/usr/bin:/bin"


def test_the_product_reads_it(path: str) -> None:
    done = subprocess.run(
        [sys.executable, "-S", SMOKE], capture_output=True, text=True, env={"PATH": path}, check=False
    )
    lines = [line for line in done.stdout.splitlines() if not line.startswith("skipped torch")]
    assert done.returncode == 0, done.stdout + done.stderr
    assert not [line for line in lines if line.startswith("WRONG")]
    assert f"ok     nvidia_driver, 580 or newer: driver {VERSION}" in lines
    (status,) = [line for line in lines if "serving_status' GPU" in line]
    gpu = json.loads(status.partition(": ")[2])
    said = (SAID / "nvidia-smi-status.txt").read_text().splitlines()[0].split(", ")
    assert [gpu["driver"], gpu["power_w"], gpu["temperature_c"]] == [VERSION, float(said[1]), float(said[2])]


def test_torch_is_of_cuda_13() -> None:
    said = json.loads((SAID / "torch.json").read_text())
    assert (said["version"], said["distribution"], said["available"]) == ("2.11.0+cu130", "2.11.0", True)
    assert venv.torch_cuda(str(SAID / "torch-version.py.txt")) == said["cuda"] == "13.0"
