"""Writes the four checkpoints into a node's folder of models."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import configs, makeup
from .headers import header, index, shards, write_sparse

BF16_SHARDS = 14
FP8_SHARDS = 10
MTP_IGNORED = r"re:^mtp\..*"


def seed(models_dir: Path) -> None:
    """Fill `models_dir` with the checkpoints that are not there yet; each appears whole or not at all.

    They look like 153 GB and take 50 MB of disk. Raises OSError when the folder cannot be written.
    """
    models_dir.mkdir(parents=True, exist_ok=True)
    for name, fill in CHECKPOINTS.items():
        if not (models_dir / name).exists():
            with tempfile.TemporaryDirectory(dir=models_dir, prefix=".seed-") as staging:
                folder = Path(staging) / name
                folder.mkdir()
                fill(folder)
                folder.rename(models_dir / name)


def fill_bf16(folder: Path) -> None:
    """Several shards and an index."""
    write_sharded(folder, list(makeup.bf16_tensors()), BF16_SHARDS)
    write_json(folder / "config.json", configs.config())


def fill_nvfp4(folder: Path) -> None:
    """One file, no index."""
    write_sparse(folder / "model.safetensors", header(list(makeup.nvfp4_tensors())))
    write_json(folder / "config.json", configs.config(configs.nvfp4_quantization()))


def fill_nvfp4_mtp(folder: Path) -> None:
    """The NVFP4 file and the grafted draft beside it; without an index every file is read."""
    write_sparse(folder / "model.safetensors", header(list(makeup.nvfp4_tensors())))
    write_sparse(folder / "mtp.safetensors", header(list(makeup.draft_tensors())))
    write_json(folder / "config.json", configs.config(configs.nvfp4_quantization(MTP_IGNORED)))


def fill_fp8(folder: Path) -> None:
    """Ten shards and an index."""
    write_sharded(folder, list(makeup.fp8_tensors()), FP8_SHARDS)
    write_json(folder / "config.json", configs.config(configs.fp8_quantization()))


CHECKPOINTS: dict[str, Callable[[Path], None]] = {
    "Qwen-AgentWorld-35B-A3B": fill_bf16,
    "Qwen-AgentWorld-35B-A3B-NVFP4": fill_nvfp4,
    "Qwen-AgentWorld-35B-A3B-NVFP4-MTP": fill_nvfp4_mtp,
    "Qwen3.6-35B-A3B-FP8": fill_fp8,
}


def write_sharded(folder: Path, tensors: list[makeup.Tensor], count: int) -> None:
    """The shards, and the index that names them."""
    files = shards(tensors, count)
    for name, held in files.items():
        write_sparse(folder / name, header(held))
    write_json(folder / "model.safetensors.index.json", index(files))


def write_json(path: Path, document: dict[str, Any]) -> None:
    """Two spaces deep and ending in a newline, as published checkpoints have it."""
    path.write_text(json.dumps(document, indent=2) + "\n")
