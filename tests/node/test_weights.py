"""What stays in memory of a checkpoint, without its headers being parsed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from sparkops.checkpoint.headers import Headers
from sparkops.checkpoint.inspect import inspect
from sparkops.node import checkpoint, weights

INDEX = "model.safetensors.index.json"


def write(path: Path, *names: str, each: int = 1000) -> None:
    """A file of tensors of `each` bytes."""
    header = {
        name: {"dtype": "U8", "shape": [each], "data_offsets": [each * at, each * at + each]}
        for at, name in enumerate(names)
    }
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text)
    os.truncate(path, 8 + len(text) + each * len(names))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two files that the index names, and one that the engine passes over."""
    made = tmp_path / "model"
    made.mkdir()
    (made / "config.json").write_text("{}")
    write(made / "model-1.safetensors", "a", "b")
    write(made / "model-2.safetensors", "c")
    write(made / "consolidated.safetensors", "a", "b", "c")
    weight_map = {"a": "model-1.safetensors", "b": "model-1.safetensors", "c": "model-2.safetensors"}
    (made / INDEX).write_text(json.dumps({"weight_map": weight_map}))
    return made


def test_it_is_what_inspect_finds_in_the_headers(folder: Path) -> None:
    found = weights.look(str(folder))
    assert found == {"path": str(folder), "present": True, "resident": 3000, "held": 0}
    assert inspect(Headers.of(checkpoint.survey(str(folder)))).resident_bytes == 3000
    (folder / INDEX).unlink()
    assert weights.look(str(folder))["resident"] == 6000


def change(folder: Path, name: str, data: bytes | None) -> None:
    if data is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(data)


@pytest.mark.parametrize(
    ("name", "data", "present"),
    [
        ("config.json", None, False),
        ("model-2.safetensors", None, False),
        ("consolidated.safetensors", None, True),
        ("model-2.safetensors", b"", True),
        ("model-2.safetensors", b"\xff" * 100, True),
        (INDEX, b"{", True),
        (INDEX, b'{"weight_map": 3}', True),
    ],
)
def test_one_that_is_not_whole(folder: Path, name: str, data: bytes | None, present: bool) -> None:
    change(folder, name, data)
    found = weights.look(str(folder))
    known = 3000 if name == "consolidated.safetensors" else None
    assert (found["present"], found["resident"]) == (present, known)


def test_what_a_part_of_it_takes(folder: Path) -> None:
    (folder / "config.json").unlink()
    (folder / ".cache").mkdir()
    (folder / ".cache" / "part.incomplete").write_bytes(os.urandom(1 << 20))
    found = weights.look(str(folder))
    assert 1 << 20 <= found["held"] < 2 << 20


@pytest.mark.parametrize("name", ["nothing", "model/config.json"])
def test_no_folder(folder: Path, name: str) -> None:
    found: dict[str, Any] = weights.look(str(folder.parent / name))
    assert (found["present"], found["held"]) == (False, 0)


def test_nothing_of_it_stays_in_the_page_cache(folder: Path) -> None:
    from sparkops.node import pagecache

    files = [str(path) for path in folder.iterdir() if path.suffix == ".safetensors"]
    for path in files:
        with open(path, "rb") as file:  # noqa: PTH123
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    weights.look(str(folder))
    assert not any(pagecache.resident(path) for path in files)
