"""The shipped patch on the real files."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from sparkops.node import patching
from sparkops.node.api import Failure, Node, Outcome, Patch
from sparkops.node.modules import pinned_patch
from sparkops.recipes.load import Catalogue
from tests.recipes.wheelfile import from_wheel

NAME = "qwen3_5-language-only-guard"
FACTS = {
    "0.24.0": (
        "86ca256c5e3803245f27ac5c8d931cd3d3cb21611aaf2ba90961fb72646c5ca6",
        "a6cb0194dbe8f867c4b4064f164c8be0d484af9c5ff8ce5a9811003ff027ed06",
    ),
    "0.26.0": (
        "da738a2017741b8df66cbdb2ce5301c5cdec87ffacb2279f85245640eb33c496",
        "50a1de789dbdd6d857d05a77c73c569bba947c9c50a869fca13ecb2ad49531a8",
    ),
}


def shipped() -> Patch:
    patch = Catalogue().patch(NAME)
    versions = [{"engine": v.engine, "before": v.before, "after": v.after} for v in patch.versions]
    return Patch(patch.name, patch.file, versions, patch.diff)


def test_it_pins_the_known_hashes() -> None:
    assert {v["engine"]: (v["before"], v["after"]) for v in shipped().versions} == {
        f"vllm {version}": hashes for version, hashes in FACTS.items()
    }


@pytest.mark.network
@pytest.mark.parametrize("machine", ["aarch64", "x86_64"])
@pytest.mark.parametrize("version", FACTS)
def test_real_file_to_guarded_and_back(version: str, machine: str, tmp_path: Path) -> None:
    patch = shipped()
    pristine = from_wheel("vllm", f"vllm-{version}-cp38-abi3-manylinux_2_28_{machine}.whl", patch.file)
    before, after = FACTS[version]
    assert hashlib.sha256(pristine).hexdigest() == before
    cached = tmp_path / "cached"
    cached.write_bytes(pristine)
    file = tmp_path / "site-packages" / patch.file
    file.parent.mkdir(parents=True)
    os.link(cached, file)
    node = Node()
    node.check = False

    def apply(state: str) -> Outcome:
        args = pinned_patch.Args(name=patch, root=str(tmp_path / "site-packages"), state=state)
        return pinned_patch.apply(args, node)

    assert apply("present").state == "changed"
    assert hashlib.sha256(file.read_bytes()).hexdigest() == after
    assert file.with_name(file.name + ".orig").read_bytes() == cached.read_bytes() == pristine
    assert apply("present").state == "ok"
    assert apply("absent").state == "changed"
    assert file.read_bytes() == pristine

    edited = pristine.replace(b"rms_norm_eps", b"rms_eps")
    file.write_bytes(edited)
    with pytest.raises(Failure, match=r"hunk 1 of 2 .* does not apply"):
        apply("present")
    assert file.read_bytes() == edited


@pytest.mark.network
def test_no_line_of_context_more_than_tells_the_places_apart() -> None:
    patch = shipped()
    text = from_wheel("vllm", "vllm-0.24.0-cp38-abi3-manylinux_2_28_x86_64.whl", patch.file).decode()
    for hunk in patching.parse(patch.diff):
        assert text.count("".join(hunk.old)) == 1
        assert text.count("".join(hunk.old[:-1])) == 2
