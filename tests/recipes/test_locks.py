"""The shipped locks: hashes for everything, nothing of where they were made."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import parse_wheel_filename

from sparkops.node import simple_index
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


# What a Spark installs: CPython 3.12 on aarch64 with Ubuntu 24.04's glibc (2.39), the best tag first.
PLATFORMS = [*(f"manylinux_2_{minor}_aarch64" for minor in range(39, 16, -1)), "manylinux2014_aarch64", "linux_aarch64"]
TAGS = [*cpython_tags((3, 12), platforms=PLATFORMS), *compatible_tags((3, 12), "cp312", PLATFORMS)]
RANKS: dict[Tag, int] = {tag: rank for rank, tag in reversed(list(enumerate(TAGS)))}


def project(package: str) -> dict[str, tuple[str, int]]:
    """The index's files of a package: sha256 -> (file name, bytes)."""
    pieces: list[bytes] = []
    simple_index.fetch(f"{INDEX.rstrip('/')}/{package}/", pieces.append)
    files = json.loads(b"".join(pieces))["files"]
    return {one["hashes"]["sha256"]: (one["filename"], one["size"]) for one in files if "sha256" in one["hashes"]}


def rank(file: str) -> int:
    """How well a file suits a Spark: the least is the best; len(TAGS): not at all."""
    tags = parse_wheel_filename(file)[3] if file.endswith(".whl") else ()
    return min((RANKS.get(tag, len(TAGS)) for tag in tags), default=len(TAGS))


@pytest.mark.network
@pytest.mark.parametrize("name", ENGINES)
def test_every_file_of_the_aarch64_lock_is_in_the_index(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each hash is that of a file there, and each package has a wheel for a Spark; prints what they add up to."""
    text = Path(Catalogue().engine(name).lock("aarch64")).read_text().replace("\\\n", "")
    wanted = {line.split("==")[0]: re.findall("sha256:([0-9a-f]{64})", line) for line in text.splitlines()}

    def size(package: str) -> int:
        listed = project(package)
        assert set(wanted[package]) <= listed.keys(), f"{package}: the index lacks a file that the lock names"
        file, found = min((listed[digest] for digest in wanted[package]), key=lambda one: rank(one[0]))
        assert rank(file) < len(TAGS), f"{package}: no wheel for aarch64 and CPython 3.12"
        return found

    with ThreadPoolExecutor(4) as pool:
        total = sum(pool.map(size, wanted))
    with capsys.disabled():
        print(f"\n{name} for aarch64: {len(wanted)} files, {total / 1e9:.2f} GB to download")
    assert len(wanted) == ENGINES[name]
    assert 3e9 < total < 6e9
