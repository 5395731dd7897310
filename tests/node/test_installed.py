"""An environment beside what an engine's lock, its CUDA and its patches ask for."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from sparkops.node.api import Patch
from sparkops.node.installed import differences, problems, versions

PACKAGES = ["vllm==0.24.0", "torch==2.11.0", "Some_Thing.x==1.0"]
TORCH = "__version__ = '2.11.0+cu130'\ncuda: str = '{}'\n"
STOCK, GUARDED = "stock\n", "guarded\n"
FILE = "vllm/model.py"
BEFORE, AFTER = (sha256(text.encode()).hexdigest() for text in (STOCK, GUARDED))
PATCH = Patch("guard", FILE, [{"engine": "vllm 0.24.0", "before": BEFORE, "after": AFTER}], "")


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    """What the lock says, unpatched."""
    path = tmp_path / "venv"
    site = path / "lib/python3.12/site-packages"
    for name in ("vllm-0.24.0", "torch-2.11.0+cu130", "some_thing_x-1.0", "pip-24.0"):
        (site / f"{name}.dist-info").mkdir(parents=True)
    for file, text in {"torch/version.py": TORCH.format("13.0"), FILE: STOCK}.items():
        (site / file).parent.mkdir(exist_ok=True)
        (site / file).write_text(text)
    (path / "bin").mkdir()
    (path / "bin/vllm").write_text("#!/bin/sh\n")
    (path / "bin/vllm").chmod(0o755)
    return path


def site(venv: Path) -> Path:
    return venv / "lib/python3.12/site-packages"


def test_what_is_wanted(venv: Path) -> None:
    assert problems(str(venv), PACKAGES, "13.0", []) == []
    assert versions(str(site(venv)))["some-thing-x"] == "1.0"


def test_a_patch(venv: Path) -> None:
    assert problems(str(venv), PACKAGES, None, [PATCH]) == [f"the patch guard is not in ({FILE})"]
    (site(venv) / FILE).write_text(GUARDED)
    assert problems(str(venv), PACKAGES, None, [PATCH]) == []
    (site(venv) / FILE).unlink()
    assert "is missing" in problems(str(venv), PACKAGES, None, [PATCH])[0]


def test_other_versions_and_another_cuda(venv: Path) -> None:
    (site(venv) / "torch/version.py").write_text(TORCH.format("12.8"))
    (site(venv) / "vllm-0.24.0.dist-info").rename(site(venv) / "vllm-0.23.0.dist-info")
    (site(venv) / "some_thing_x-1.0.dist-info").rmdir()
    assert problems(str(venv), PACKAGES, "13.0", []) == [
        "vllm 0.23.0, locked: 0.24.0",
        "Some_Thing.x is missing, locked: 1.0",
        "torch is built for CUDA 12.8, expected 13.0",
    ]


def test_no_engine_at_all(venv: Path, tmp_path: Path) -> None:
    assert problems(str(tmp_path / "nothing"), PACKAGES, None, []) == ["there is no such folder"]
    assert "no Python environment" in problems(str(tmp_path), PACKAGES, None, [])[0]
    (venv / "bin/vllm").chmod(0o644)
    assert problems(str(venv), PACKAGES, None, []) == ["there is no program bin/vllm in it"]


@pytest.mark.parametrize(
    ("pin", "has", "good"),
    [
        ("a==1.0", "1.0", True),
        ("a==1.0", "1.0+cu130", True),
        ("a==1.0+cu130", "1.0+cu130", True),
        ("a==1.0+cu130", "1.0", False),
        ("a==1.0+cu130", "1.0+cpu", False),
        ("a==1.0", "1.0.1", False),
        ("A_b.c==1.0", "1.0", True),
    ],
)
def test_a_pin(pin: str, has: str, good: bool) -> None:
    name = pin.partition("==")[0].lower().replace("_", "-").replace(".", "-")
    assert (differences([pin], {name: has}) == []) is good


def test_many_differences_are_counted() -> None:
    found = differences([f"p{number}==1" for number in range(8)], {})
    assert len(found) == 6
    assert found[-1] == "and 3 packages more"
