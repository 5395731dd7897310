"""The stand-in's wheels, engine data and patch."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from sparkops.lab.standin import build, packages, patching
from sparkops.lab.standin.wheels import Package, write_wheel
from sparkops.node.patching import parse
from sparkops.recipes.load import Catalogue


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    dest = tmp_path_factory.mktemp("lab")
    build(dest, cache=tmp_path_factory.mktemp("cache"))
    return dest


def load(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(path.read_text())
    return document


def uv(*argv: str) -> str:
    return subprocess.run([sys.executable, "-m", "uv", *argv], check=True, capture_output=True, text=True).stdout


def test_the_product_takes_the_engine_for_its_own(built: Path) -> None:
    catalogue = Catalogue([built])
    for version in packages.VLLM_VERSIONS:
        engine = catalogue.engine(f"vllm-{version}")
        assert (engine.version, engine.python, engine.expect_cuda) == (version, None, "13.0")
        assert {machine: Path(lock).parent for machine, lock in engine.locks.items()} == {
            "aarch64": built / "engines",
            "x86_64": built / "engines",
        }
    assert catalogue.patch(patching.NAME).file == patching.FILE


def test_the_lock_holds_the_hash_of_every_wheel(built: Path) -> None:
    lock = (built / "engines" / "vllm-0.24.0.lock").read_text()
    wheels = {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in (built / "wheels").glob("*.whl")}
    other = {digest for path, digest in wheels.items() if path.name.startswith("vllm-0.26.0")}
    assert set(re.findall(r"--hash=sha256:(\w+)", lock)) == set(wheels.values()) - other
    assert "torch==2.11.0 \\\n" in lock


def test_a_build_from_scratch_has_the_same_bytes(built: Path, tmp_path: Path) -> None:
    build(tmp_path / "again", cache=tmp_path / "cache")
    files = {path.relative_to(built): path.read_bytes() for path in built.rglob("*") if path.is_file()}
    again = tmp_path / "again"
    assert {path.relative_to(again): path.read_bytes() for path in again.rglob("*") if path.is_file()} == files


def test_build_over_an_older_build(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    (tmp_path / "wheels").mkdir()
    (tmp_path / "wheels" / "vllm-0.24.0-py3-none-any.whl").write_bytes(b"old")
    build(tmp_path, cache=tmp_path / "cache")
    assert zipfile.is_zipfile(tmp_path / "wheels" / "vllm-0.24.0-py3-none-any.whl")
    assert tmp_path.stat().st_mode & 0o777 == 0o700


def test_uv_installs_by_the_lock(built: Path, tmp_path: Path) -> None:
    venv, cache = tmp_path / "venv", ("--cache-dir", str(tmp_path / "uv"))
    uv("venv", "-q", *cache, "-p", sys.executable, str(venv))
    where = ("--no-index", "--find-links", str(built / "wheels"), "-p", str(venv / "bin/python"))
    uv("pip", "install", *cache, *where, "--require-hashes", "-r", str(built / "engines/vllm-0.26.0.lock"))
    listed = uv("pip", "list", *cache, "-p", str(venv / "bin/python"), "--format", "freeze").split()
    assert sorted(listed) == [
        *("compressed-tensors==0.17.0", "safetensors==0.8.0", "tokenizers==0.22.2"),
        *("torch==2.11.0", "transformers==5.14.1", "vllm==0.26.0"),
    ]
    version = subprocess.run([venv / "bin/vllm", "--version"], capture_output=True, text=True, check=True)
    assert version.stdout == "0.26.0\n"
    told = subprocess.run(
        [venv / "bin/python", "-c", "import torch, torch.version as v; print(torch.__version__, v.cuda)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout == "2.11.0+cu130 13.0\n"


def test_torch_says_its_cuda_in_the_real_file_s_words(built: Path) -> None:
    with zipfile.ZipFile(built / "wheels" / "torch-2.11.0-py3-none-any.whl") as wheel:
        text = wheel.read("torch/version.py").decode()
    assert "__version__ = '2.11.0+cu130'" in text
    assert "cuda: Optional[str] = '13.0'" in text


def test_the_patch_pins_the_wheels_file(built: Path) -> None:
    patch = load(built / "patches" / f"{patching.NAME}.yml")
    for version in patch["versions"]:
        name, number = version["engine"].split()
        with zipfile.ZipFile(built / "wheels" / f"{name}-{number}-py3-none-any.whl") as wheel:
            source = wheel.read(patch["file"])
        assert hashlib.sha256(source).hexdigest() == version["before"]
        after = patching.guarded(source.decode())
        assert after.count("if multimodal_config.language_model_only:") == 2
        assert hashlib.sha256(after.encode()).hexdigest() == version["after"]


def test_the_diff_applies_in_one_place_a_hunk(built: Path) -> None:
    patch = load(built / "patches" / f"{patching.NAME}.yml")
    source = packages.vllm("0.24.0").files[patching.FILE]
    hunks = parse(patch["diff"])
    assert len(hunks) == 2
    text = source
    for hunk in hunks:
        assert source.count("".join(hunk.old)) == 1
        text = text.replace("".join(hunk.old), "".join(hunk.new))
    assert text == patching.guarded(source)


def test_nothing_installs_as_our_own_code(built: Path) -> None:
    with zipfile.ZipFile(built / "wheels" / "vllm-0.24.0-py3-none-any.whl") as wheel:
        for name in wheel.namelist():
            assert not re.search(rb"^\s*(from|import) sparkops", wheel.read(name), re.MULTILINE), name


def test_record_lists_each_file(tmp_path: Path) -> None:
    package = Package(
        "two-words", "1.0", "a summary", {"two_words/__init__.py": "x = 1\n"}, scripts={"two": "two_words:x"}
    )
    path = write_wheel(package, tmp_path)
    assert path.name == "two_words-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path) as wheel:
        record = wheel.read("two_words-1.0.dist-info/RECORD").decode().splitlines()
        assert [line.split(",")[0] for line in record] == wheel.namelist()
        assert {entry.date_time for entry in wheel.infolist()} == {(2026, 7, 27, 0, 0, 0)}
        assert "Name: two-words\n" in wheel.read("two_words-1.0.dist-info/METADATA").decode()
        assert wheel.read("two_words-1.0.dist-info/entry_points.txt") == b"[console_scripts]\ntwo = two_words:x\n"
    # Of `x = 1\n`, by sha256sum and base64.
    assert record[0] == "two_words/__init__.py,sha256=nia_NpkRxFwkPGhBR7I_yeHc_PJX0pmhxjIBam_NM_Q,6"
