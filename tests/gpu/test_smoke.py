"""The smoke itself, on machines without a GPU: that it would see what is wrong, by the lab's stand-ins."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sparkops.lab.standin import nvidia_smi, packages
from sparkops.lab.standin.smi import DRIVER

SMOKE = Path(__file__).with_name("smoke.py")
PATH = "/usr/local/bin:/usr/bin:/bin"
TORCH = """\
from .version import __version__
from . import version
class cuda:
    is_available = staticmethod(lambda: True)
    get_device_capability = staticmethod(lambda: (12, 1))
"""


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A folder with nvidia-smi, and a torch with its metadata."""
    (tmp_path / "nvidia-smi").write_text(nvidia_smi.SCRIPT)
    (tmp_path / "nvidia-smi").chmod(0o755)
    site = tmp_path / "site"
    (site / "torch").mkdir(parents=True)
    (site / "torch/__init__.py").write_text(TORCH)
    (site / "torch/version.py").write_text(packages.TORCH_VERSION)
    (site / "torch-2.11.0.dist-info").mkdir()
    (site / "torch-2.11.0.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.11.0\n")
    return tmp_path


def smoke(machine: Path, *words: str) -> tuple[int, str]:
    env = {"PATH": f"{machine}:{PATH}", "SPARKOPS_LAB_ETC": str(machine), "PYTHONPATH": str(machine / "site")}
    done = subprocess.run([sys.executable, "-S", SMOKE, *words], capture_output=True, text=True, env=env, check=False)
    assert not done.stderr, done.stderr
    return done.returncode, done.stdout


def test_it_is_well_and_keeps_what_was_said(machine: Path) -> None:
    status, told = smoke(machine, "--save", str(machine / "said"))
    assert status == 0, told
    assert "WRONG" not in told
    assert f"nvidia_driver, 580 or newer: driver {DRIVER}" in told
    assert "13.0 (torch 2.11.0+cu130, distribution 2.11.0, GPU True, [12, 1])" in told
    assert (machine / "said/nvidia-smi-driver.txt").read_text() == f"{DRIVER}\nexit 0\n"
    assert (machine / "said/torch-version.py.txt").read_text() == packages.TORCH_VERSION


def test_an_old_driver(machine: Path) -> None:
    (machine / "driver").write_text("570.86.15")
    status, told = smoke(machine)
    assert status == 1
    assert "WRONG  nvidia_driver, 580 or newer: driver 570.86.15 is older than 580" in told


def test_torch_says_something_else_than_its_file(machine: Path) -> None:
    (machine / "site/torch/__init__.py").write_text(TORCH + "version.cuda = '12.6'\n")
    status, told = smoke(machine)
    assert status == 1
    assert "WRONG  torch/version.py read without running it: 13.0" in told


@pytest.mark.parametrize("there", [True, False])
def test_no_gpu(machine: Path, there: bool) -> None:
    (machine / "driver").write_text("")
    if not there:
        (machine / "nvidia-smi").unlink()
    status, told = smoke(machine)
    assert status == 77
    assert told.startswith("skipped: no GPU here: ")


def test_a_machine_without_torch(machine: Path) -> None:
    (machine / "site/torch/__init__.py").unlink()
    (machine / "site/torch/version.py").unlink()
    status, told = smoke(machine)
    assert status == 0
    assert "skipped torch: " in told
