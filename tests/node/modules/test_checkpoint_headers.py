from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from sparkops.lab.standin import checkpoints
from sparkops.node.api import Failure


def write(path: Path, names: list[str]) -> None:
    header = {name: {"dtype": "U8", "shape": [4], "data_offsets": [4 * n, 4 * n + 4]} for n, name in enumerate(names)}
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"\0" * 4 * len(names))


def test_document(tmp_path: Path, apply: Any) -> None:
    names = ["a", *(f"layers.3.mlp.experts.{n}.up_proj.weight" for n in range(5)), "layers.3.mlp.experts.gate_up_proj"]
    write(tmp_path / "m.safetensors", names)
    (tmp_path / "config.json").write_text('{"num_hidden_layers": 4}')
    for check in (True, False):
        done = apply("checkpoint_headers", path=str(tmp_path), check=check)
        assert (done.state, done.msg) == ("ok", "1 files, 7 tensors")
    document = done.result["document"]
    (file,) = document["files"]
    assert file["groups"] == [
        ["a", "U8", [4], 1],
        ["layers.3.mlp.experts.*.up_proj.weight", "U8", [4], 5],
        ["layers.3.mlp.experts.gate_up_proj", "U8", [4], 1],
    ]
    assert file["size"] == (tmp_path / "m.safetensors").stat().st_size
    assert (document["config"], document["index"]) == ({"num_hidden_layers": 4}, None)
    assert json.loads(json.dumps(document)) == document


def test_it_is_compact(tmp_path: Path, apply: Any) -> None:
    checkpoints.seed(tmp_path)
    done = apply("checkpoint_headers", path=str(tmp_path / "Qwen-AgentWorld-35B-A3B-NVFP4"))
    assert done.msg == "1 files, 124756 tensors"
    assert len(json.dumps(done.result)) < 300_000


def test_damage_is_named(tmp_path: Path, apply: Any) -> None:
    write(tmp_path / "a.safetensors", ["a"])
    write(tmp_path / "b.safetensors", ["b"])
    os.truncate(tmp_path / "b.safetensors", 40)
    with pytest.raises(Failure, match=r"b\.safetensors: truncated: 40 bytes") as caught:
        apply("checkpoint_headers", path=str(tmp_path))
    assert "a.safetensors" not in caught.value.msg
    with pytest.raises(Failure, match=r"cannot read .*gone: No such file"):
        apply("checkpoint_headers", path=str(tmp_path / "gone"))
