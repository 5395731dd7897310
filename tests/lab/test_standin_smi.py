"""The stand-in for nvidia-smi."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from sparkops.lab.standin import nvidia_smi


@pytest.fixture
def node(tmp_path: Path) -> Path:
    script = tmp_path / "nvidia-smi"
    script.write_text(nvidia_smi.SCRIPT)
    script.chmod(0o755)
    (tmp_path / "driver").write_text("580.126.09\n")
    return tmp_path


def ask(node: Path, *argv: str) -> tuple[int, str]:
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "SPARKOPS_LAB_ETC": str(node)}
    done = subprocess.run([node / "nvidia-smi", *argv], capture_output=True, text=True, env=env)
    return done.returncode, done.stdout


def test_a_gb10_s_answer(node: Path) -> None:
    fields = "name,driver_version,compute_cap,power.draw,clocks.sm"
    assert ask(node, f"--query-gpu={fields}", "--format=csv,noheader") == (
        0,
        "NVIDIA GB10, 580.126.09, 12.1, 16.00 W, 2405 MHz\n",
    )


def test_memory_and_fan_are_not_available(node: Path) -> None:
    fields = "memory.total,memory.used,temperature.gpu,fan.speed"
    assert ask(node, f"--query-gpu={fields}", "--format=csv,noheader")[1] == "[N/A], [N/A], 42, [N/A]\n"


def test_header_and_no_units(node: Path) -> None:
    _, told = ask(node, "--query-gpu=name, power.draw", "--format=csv,nounits")
    assert told == "name, power.draw [W]\nNVIDIA GB10, 16.00\n"


def test_an_unknown_field(node: Path) -> None:
    status, told = ask(node, "--query-gpu=name,foo", "--format=csv,noheader")
    assert (status, told.strip()) == (2, 'Field "foo" is not a valid field to query.')


def test_the_driver_is_read_at_each_call(node: Path) -> None:
    (node / "driver").write_text("570.86.15")
    assert ask(node, "--query-gpu=driver_version", "--format=csv,noheader") == (0, "570.86.15\n")
    status, table = ask(node)
    assert status == 0
    assert "Driver Version: 570.86.15" in table
    assert "CUDA Version: 12.8" in table
    assert "Not Supported" in table
    assert len({len(line) for line in table.splitlines() if line.startswith(("|", "+"))}) == 1


def test_a_driver_that_does_not_answer(node: Path) -> None:
    (node / "driver").write_text("")
    status, told = ask(node, "-L")
    assert status == 9
    assert told.startswith("NVIDIA-SMI has failed")


def test_list(node: Path) -> None:
    (node / "driver").unlink()
    assert ask(node, "-L")[1].startswith("GPU 0: NVIDIA GB10 (UUID: GPU-")
