"""The wheel carries all that a clean venv needs, away from the checkout."""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = (
    "setup.py",
    "pyproject.toml",
    "MANIFEST.in",
    "README.md",
    "LICENSE",
    "NOTICE",
    "sparkops",
    "playbooks",
    "templates",
    "inventory",
)
LEFT_OUT = shutil.ignore_patterns("__pycache__", "_data", "*.egg-info", ".*")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy: setuptools writes beside its sources, and stale files there would get in."""
    checkout, out = tmp_path_factory.mktemp("checkout"), tmp_path_factory.mktemp("wheel")
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, checkout / name, ignore=LEFT_OUT)
        else:
            shutil.copy(ROOT / name, checkout)
    argv = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index", "-w", str(out)]
    done = subprocess.run([*argv, str(checkout)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (checkout / "sparkops" / "_data").exists(), "the build wrote into the source tree"
    (built,) = out.iterdir()
    return built


def files(folder: str) -> set[str]:
    """The files of a folder of the checkout, relative to it, without what is made there."""
    made = {"__pycache__", "_data"}
    found = (path.relative_to(ROOT / folder) for path in (ROOT / folder).rglob("*") if path.is_file())
    return {path.as_posix() for path in found if not made & set(path.parts) and not path.name.startswith(".")}


def test_every_file_of_the_package_is_in_the_wheel(wheel: Path) -> None:
    inside = set(zipfile.ZipFile(wheel).namelist())
    assert not {f"sparkops/{name}" for name in files("sparkops")} - inside


@pytest.mark.parametrize("folder", ["playbooks", "templates", "inventory"])
def test_the_data_folders_are_in_the_wheel(wheel: Path, folder: str) -> None:
    archive = zipfile.ZipFile(wheel)
    prefix = f"sparkops/_data/{folder}/"
    assert {name[len(prefix) :] for name in archive.namelist() if name.startswith(prefix)} == files(folder)
    assert all(archive.read(prefix + name) == (ROOT / folder / name).read_bytes() for name in files(folder))


def test_nothing_but_the_package_is_in_the_wheel(wheel: Path) -> None:
    tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert tops == {"sparkops", "sparkops-0.1.0.dist-info"}
    assert not [name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("sparkops/_data/tests")]


def test_the_licences_are_in_the_wheel(wheel: Path) -> None:
    names = {name.rsplit("/", 1)[-1] for name in zipfile.ZipFile(wheel).namelist()}
    assert {"LICENSE", "NOTICE"} <= names


@pytest.mark.network
def test_an_installed_wheel_provisions_away_from_the_checkout(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    sparkops = str(python.with_name("sparkops"))

    def run(*argv: str) -> str:
        done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=280)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run(str(python), "-m", "pip", "install", "-q", str(wheel))
    assert "site-packages" in run(str(python), "-c", "import sparkops; print(sparkops.__file__)")
    run(sparkops, "lab", "up", "--driver", "process", "--nodes", "1", "--dir", "lab")
    try:
        run(sparkops, "-i", "lab/inventory.yml", "provision", "sparks")
        assert "nothing changed on 1 node" in run(sparkops, "-i", "lab/inventory.yml", "provision", "sparks")
    finally:
        run(sparkops, "lab", "down", "--dir", "lab")
