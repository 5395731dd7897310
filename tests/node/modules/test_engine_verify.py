from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

LOCK = """\
einops==0.8.2 \\
    --hash=sha256:aa
PyYAML==6.0.3 \\
    --hash=sha256:cc \\
    --hash=sha256:dd
torch==2.11.0 \\
    --hash=sha256:ee
"""
STUB = "vllm-0.24.0+cpu.dist-info/METADATA"


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """The site-packages of an engine as python_venv leaves it."""
    engine = tmp_path / "engines" / "vllm-0.24.0-abc"
    site = engine / "lib/python3.12/site-packages"
    for name in ("einops-0.8.2", "pyyaml-6.0.3", "torch-2.11.0"):
        (site / f"{name}.dist-info").mkdir(parents=True)
        (site / f"{name}.dist-info/RECORD").write_text("")
    (site / "torch-2.11.0.dist-info/RECORD").write_text("torch/version.py,,7\n")
    (site / "torch").mkdir()
    (site / "torch/version.py").write_text("cuda=1\n")
    (site / STUB).parent.mkdir()
    (site / STUB).write_text("stub")
    (site / "model.py").write_text("guarded")
    (engine / "requirements.lock").write_text(LOCK)
    noted = {
        **{"lock": sha(LOCK), "files": {STUB: sha("stub")}, "built": "then", "tried": "later"},
        "patches": [{"name": "guard", "file": "model.py", "sha256": sha("guarded")}],
    }
    (engine / "sparkops.json").write_text(json.dumps(noted))
    # What is not an engine of sparkops' own: somebody's venv, a build under way.
    (tmp_path / "engines/mine/bin").mkdir(parents=True)
    (tmp_path / "engines/vllm-0.24.0-abc.building-7").mkdir()
    (tmp_path / "engines/vllm-0.24.0-abc.building-7/sparkops.json").write_text("{}")
    return site


def problems(apply: Any, tmp_path: Path) -> list[str]:
    done = apply("engine_verify", home=str(tmp_path))
    (one,) = done.result["engines"]
    assert (done.state, one["name"], one["built"]) == ("ok", "vllm-0.24.0-abc", "then")
    found: list[str] = one["problems"]
    return found


def test_as_locked(apply: Any, site: Path, tmp_path: Path) -> None:
    before = {path: path.lstat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert problems(apply, tmp_path) == []
    assert {path: path.lstat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_packages_that_differ(apply: Any, site: Path, tmp_path: Path) -> None:
    (site / "einops-0.8.2.dist-info").rename(site / "einops-0.7.0.dist-info")
    (site / "pyyaml-6.0.3.dist-info").rename(site / "Some_Thing-1.0.dist-info")
    assert problems(apply, tmp_path) == [
        "einops is 0.7.0, locked is 0.8.2",
        "pyyaml 6.0.3 is missing",
        "some-thing 1.0 is not in the lock",
    ]


def test_files_that_differ(apply: Any, site: Path, tmp_path: Path) -> None:
    (site / "model.py").write_text("edited")
    (site / "torch/version.py").write_text("cuda=None\n")
    (site / STUB).write_text("another")
    (tmp_path / "engines/vllm-0.24.0-abc/requirements.lock").write_text(LOCK.replace("aa", "ab"))
    assert problems(apply, tmp_path) == [
        "requirements.lock is not the one it was built from",
        "torch/version.py has another size",
        f"{STUB} is not what the engine's data says",
        "model.py is not as the patch guard left it",
    ]


def test_no_engines(apply: Any, tmp_path: Path) -> None:
    assert apply("engine_verify", home=str(tmp_path / "none")).result["engines"] == []
