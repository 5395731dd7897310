from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from sparkops.node.api import Failure

INDEX = "model.safetensors.index.json"


def write(path: Path, tensors: int = 2, size: int | None = None) -> None:
    header = {f"t{n}": {"dtype": "U8", "shape": [4], "data_offsets": [4 * n, 4 * n + 4]} for n in range(tensors)}
    text = json.dumps({"__metadata__": {"format": "pt"}, **header}).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text)
    os.truncate(path, 8 + len(text) + 4 * tensors if size is None else size)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    folder = tmp_path / "Model X"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    write(folder / "model.safetensors")
    return folder


def look(apply: Any, folder: Path, **more: Any) -> Any:
    return apply("checkpoint_present", path=str(folder), source="hf:org/model", **more)


def test_whole(checkpoint: Path, apply: Any) -> None:
    write(checkpoint / "mtp.safetensors", 3)
    (checkpoint / INDEX).write_text(json.dumps({"weight_map": {"t0": "model.safetensors"}}))
    for check in (True, False):
        done = look(apply, checkpoint, check=check)
        assert (done.state, done.result["tensors"]) == ("ok", 5)
        assert done.result["files"] == ["model.safetensors", "mtp.safetensors"]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda folder: (folder / "config.json").unlink(), "config.json is missing"),
        (lambda folder: (folder / "model.safetensors").unlink(), "no \\*.safetensors"),
        (lambda folder: os.truncate(folder / "model.safetensors", 170), "truncated: 170 of 17"),
        (lambda folder: os.truncate(folder / "model.safetensors", 20), "less than its header"),
        (lambda folder: os.truncate(folder / "model.safetensors", 0), "truncated: 0 bytes"),
        (lambda folder: os.truncate(folder / "model.safetensors", 5000), "longer than its header says"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"\2" + b"\0" * 7 + b"{x"), "no JSON"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"\2" + b"\0" * 7 + b"[]"), "no JSON object"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"\x08" + b"\0" * 7 + b'{"a": 1}'), "data_offsets"),
        (
            lambda folder: (folder / INDEX).write_text(json.dumps({"weight_map": {"t": "model-2.safetensors"}})),
            "model-2.safetensors is missing",
        ),
    ],
)
def test_not_whole(checkpoint: Path, apply: Any, spoil: Any, message: str) -> None:
    spoil(checkpoint)
    with pytest.raises(Failure, match=message) as caught:
        look(apply, checkpoint)
    assert "sparkops weights pull org/model NODE" in caught.value.msg


def test_a_folder_that_is_not_there(tmp_path: Path, apply: Any) -> None:
    with pytest.raises(Failure, match="no such folder"):
        look(apply, tmp_path / "gone")
    (tmp_path / "file").touch()
    with pytest.raises(Failure, match="is a file"):
        look(apply, tmp_path / "file")
    with pytest.raises(Failure, match="give model_source"):
        apply("checkpoint_present", path=f"{tmp_path}/gone")


def test_a_bad_index(checkpoint: Path, apply: Any) -> None:
    for text in ("{", "[]", '{"weight_map": 1}'):
        (checkpoint / INDEX).write_text(text)
        with pytest.raises(Failure, match="is no index"):
            look(apply, checkpoint)


def test_a_header_of_125_000_tensors_is_read_within_a_second(checkpoint: Path, apply: Any) -> None:
    write(checkpoint / "model.safetensors", 124_756)
    started = time.process_time()
    assert look(apply, checkpoint).result["tensors"] == 124_756
    assert time.process_time() - started < 1
