"""The four recipes' checkpoints as sparse files, and small ones of any make."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sparkops.lab.standin import checkpoints
from sparkops.node.safetensors import BITS

Shapes = dict[str, tuple[str, list[int]]]
Make = Callable[..., Path]


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    checkpoints.seed(folder)
    return folder


def write(path: Path, tensors: Shapes) -> int:
    """A *.safetensors file without data on the disk; returns the tensors' bytes."""
    header: dict[str, Any] = {}
    at = 0
    for name, (dtype, shape) in tensors.items():
        end = at + math.prod(shape) * BITS[dtype] // 8
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, end]}
        at = end
    raw = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(len(raw).to_bytes(8, "little") + raw)
        file.truncate(8 + len(raw) + at)
    return at


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """make({file: {tensor: (dtype, shape)}}, config, index): a checkpoint's folder. index True: one that is right."""

    def build(files: dict[str, Shapes], config: dict[str, Any] | None = None, index: Any = None) -> Path:
        folder = tmp_path / "Model X"
        folder.mkdir(exist_ok=True)
        total = sum(write(folder / name, tensors) for name, tensors in files.items())
        if config is not None:
            (folder / "config.json").write_text(json.dumps(config))
        if index is True:
            weight_map = {tensor: name for name, tensors in files.items() for tensor in tensors}
            index = {"metadata": {"total_size": total}, "weight_map": weight_map}
        if index is not None:
            (folder / "model.safetensors.index.json").write_text(json.dumps(index))
        return folder

    return build
