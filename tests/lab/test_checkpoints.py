"""The sparse checkpoints: what their headers say is what was published of the real ones."""

from __future__ import annotations

import json
import re
import struct
from pathlib import Path
from typing import Any

import pytest

from sparkops.lab.standin import checkpoints
from sparkops.lab.standin.checkpoints import geometry, makeup
from sparkops.lab.standin.checkpoints.headers import shards, size

GIB = 1 << 30
BF16 = "Qwen-AgentWorld-35B-A3B"
NVFP4 = "Qwen-AgentWorld-35B-A3B-NVFP4"
MTP = "Qwen-AgentWorld-35B-A3B-NVFP4-MTP"
FP8 = "Qwen3.6-35B-A3B-FP8"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    checkpoints.seed(folder)
    return folder


def header(path: Path) -> dict[str, Any]:
    """As the NVFP4 recipe reads it; and the data has to end where the file does."""
    with path.open("rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        tensors: dict[str, Any] = json.loads(file.read(length))
    tensors.pop("__metadata__")
    ends = [entry["data_offsets"][1] for entry in tensors.values()]
    assert path.stat().st_size == 8 + length + max(ends)
    return tensors


def tensors(folder: Path) -> dict[str, Any]:
    return {name: entry for path in folder.glob("*.safetensors") for name, entry in header(path).items()}


def nbytes(entry: dict[str, Any]) -> int:
    begin, end = entry["data_offsets"]
    return int(end - begin)


@pytest.mark.parametrize(
    ("name", "count", "visual", "mtp", "files", "data"),
    [
        (BF16, 693, 0, 0, 14, 69_321_221_376),
        (NVFP4, 124_756, 333, 0, 1, 21_884_023_952),
        (MTP, 124_775, 333, 19, 2, 21_884_023_952 + 1_689_281_536),
        (FP8, 62_546, 333, 0, 10, 37_667_035_872),
    ],
)
def test_counts_and_sizes(models: Path, name: str, count: int, visual: int, mtp: int, files: int, data: int) -> None:
    found = tensors(models / name)
    assert len(found) == count
    assert sum(".visual." in tensor for tensor in found) == visual
    assert sum(tensor.startswith("mtp.") for tensor in found) == mtp
    assert sum(map(nbytes, found.values())) == data
    assert len(list((models / name).glob("*.safetensors"))) == files


@pytest.mark.parametrize(("name", "gigabytes"), [(BF16, "5.89"), (NVFP4, "2.42"), (FP8, "4.49")])
def test_bytes_a_decode_step_reads(models: Path, name: str, gigabytes: str) -> None:
    read = 0.0
    for tensor, entry in tensors(models / name).items():
        if "visual" in tensor or "embed_tokens" in tensor:
            continue
        routed = ".experts." in tensor
        read += nbytes(entry) * (geometry.EXPERTS_PER_TOKEN / geometry.EXPERTS if routed else 1)
    assert f"{read / 1e9:.2f}" == gigabytes


def test_fp8_split(models: Path) -> None:
    found = tensors(models / FP8)
    by_dtype: dict[str, int] = {}
    for entry in found.values():
        by_dtype[entry["dtype"]] = by_dtype.get(entry["dtype"], 0) + nbytes(entry)
    routed = sum(nbytes(entry) for tensor, entry in found.items() if ".experts." in tensor)
    assert {dtype: round(total / GIB, 2) for dtype, total in by_dtype.items()} == {"F8_E4M3": 30.37, "BF16": 4.71}
    assert round(routed / GIB, 2) == 30.06


def test_nvfp4_header_has_the_published_size(models: Path) -> None:
    with (models / NVFP4 / "model.safetensors").open("rb") as file:
        assert struct.unpack("<Q", file.read(8)) == (17_583_240,)


def test_no_weights_on_disk(models: Path) -> None:
    files = [path.stat() for path in models.rglob("*") if path.is_file()]
    assert sum(file.st_size for file in files) > 150e9
    assert sum(file.st_blocks * 512 for file in files) < 100e6


@pytest.mark.parametrize("name", [BF16, FP8])
def test_index_names_every_tensor_and_its_file(models: Path, name: str) -> None:
    folder = models / name
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    assert index["weight_map"] == {
        tensor: path.name for path in folder.glob("*.safetensors") for tensor in header(path)
    }
    assert index["metadata"]["total_size"] == sum(map(nbytes, tensors(folder).values()))


@pytest.mark.parametrize("name", [NVFP4, MTP])
def test_no_index(models: Path, name: str) -> None:
    assert not (models / name / "model.safetensors.index.json").exists()


def test_configs(models: Path) -> None:
    configs = {name: json.loads((models / name / "config.json").read_text()) for name in (BF16, NVFP4, MTP, FP8)}
    for config in configs.values():
        assert config["architectures"] == ["Qwen3_5MoeForConditionalGeneration"]
        assert config["text_config"]["layer_types"].count("full_attention") == 10
        assert config["text_config"]["max_position_embeddings"] == 262_144
        assert config["text_config"]["mtp_num_hidden_layers"] == 1
        assert config["vision_config"]["depth"] == 27
    assert "quantization_config" not in configs[BF16]
    assert configs[NVFP4]["quantization_config"]["format"] == "nvfp4-pack-quantized"
    assert configs[FP8]["quantization_config"]["format"] == "float-quantized"
    ignored = {name: configs[name]["quantization_config"]["ignore"] for name in (NVFP4, MTP)}
    assert len(ignored[NVFP4]) == 191
    assert ignored[MTP] == [*ignored[NVFP4], r"re:^mtp\..*"]


@pytest.mark.parametrize("name", [NVFP4, FP8])
def test_ignored_is_what_is_not_quantized(models: Path, name: str) -> None:
    config = json.loads((models / name / "config.json").read_text())
    found = tensors(models / name)
    scaled = {tensor.rpartition(".")[0] for tensor in found if tensor.endswith(".weight_scale")}
    plain = {
        tensor.rpartition(".")[0]
        for tensor, entry in found.items()
        if tensor.endswith(".weight") and entry["dtype"] == "BF16" and len(entry["shape"]) == 2
    }
    embeddings = {module for module in plain if re.search(r"embed", module)}
    assert set(config["quantization_config"]["ignore"]) == plain - scaled - embeddings


def test_a_second_seed_touches_nothing(models: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in models.rglob("*")}
    checkpoints.seed(models)
    assert {path: path.stat().st_mtime_ns for path in models.rglob("*")} == before
    assert not list(models.glob(".seed-*"))


def test_a_checkpoint_that_is_gone_comes_back(models: Path, tmp_path: Path) -> None:
    (models / BF16).rename(tmp_path / "aside")
    checkpoints.seed(models)
    assert len(tensors(models / BF16)) == 693


def test_shards_keep_every_tensor_and_are_of_about_one_size() -> None:
    every = list(makeup.fp8_tensors())
    files = shards(every, 10)
    assert [tensor for held in files.values() for tensor in held] == every
    sizes = [sum(map(size, held)) for held in files.values()]
    assert max(sizes) < 1.2 * min(sizes)
