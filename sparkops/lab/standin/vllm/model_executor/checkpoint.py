"""What a checkpoint's folder says: its config, and the tensors that its safetensors headers name."""

from __future__ import annotations

import json
import struct
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

INDEX = "model.safetensors.index.json"
MAX_HEADER = 100_000_000  # the safetensors library's own limit
PREFIXES = (("model.language_model.", "language_model."), ("model.visual.", "visual."))


class LocalEntryNotFoundError(OSError):
    """The model is not on this machine."""


class SafetensorError(ValueError):
    """A file is not what the format asks for."""


class Checkpoint:
    """A checkpoint's folder. Raises LocalEntryNotFoundError when there is none, OSError for a config that is no JSON.

    config: the document of config.json. bytes: what its tensors take, once `tensors` has read them.
    """

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)
        self.bytes = 0
        path = self.folder / "config.json"
        if not path.is_file():
            raise LocalEntryNotFoundError(
                "Cannot find an appropriate cached snapshot folder for the specified revision on the local disk and "
                f"outgoing traffic has been disabled: {folder}"
            )
        try:
            self.config: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise OSError(f"It looks like the config file at '{path}' is not a valid JSON file.") from error
        self.architectures: list[str] = self.config.get("architectures", [])

    def tensors(self) -> list[str]:
        """The names of all tensors, as the model calls them. Raises ValueError when a file is missing or damaged."""
        self.bytes = 0
        names = []
        for file, wanted in files(self.folder):
            found = header(self.folder / file)
            missing = (wanted or set()).difference(found)
            if missing:
                raise SafetensorError(f"File {file} does not contain tensor {min(missing)}")
            for name in found if wanted is None else wanted:
                begin, end = found[name]["data_offsets"]
                self.bytes += end - begin
                names.append(in_model(name))
        return names


def in_model(name: str) -> str:
    """A tensor's name in the model."""
    for prefix, replacement in PREFIXES:
        if name.startswith(prefix):
            return replacement + name[len(prefix) :]
    return name


def files(folder: Path) -> Iterator[tuple[str, set[str] | None]]:
    """The files to read and the tensors to take from each: by the index if there is one, else everything."""
    index = folder / INDEX
    if index.is_file():
        weight_map: dict[str, str] = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
        wanted: dict[str, set[str]] = {}
        for tensor, name in weight_map.items():
            wanted.setdefault(name, set()).add(tensor)
        yield from sorted(wanted.items())
        return
    names = sorted(path.name for path in folder.glob("*.safetensors"))
    if not names:
        raise ValueError(f"Cannot find any model weights with `{folder}`")
    for name in names:
        yield name, None


def header(path: Path) -> dict[str, Any]:
    """A file's tensors by name, each with dtype, shape and data_offsets. Raises SafetensorError."""
    size = path.stat().st_size
    with path.open("rb") as file:
        first = file.read(8)
        if len(first) < 8:
            raise SafetensorError(f"Error while deserializing header: header too small ({path})")
        (length,) = struct.unpack("<Q", first)
        if length > MAX_HEADER:
            raise SafetensorError(f"Error while deserializing header: header too large ({path})")
        if length > size - 8:
            raise SafetensorError(f"Error while deserializing header: invalid header length ({path})")
        try:
            tensors: dict[str, Any] = json.loads(file.read(length))
        except ValueError as error:
            raise SafetensorError(f"Error while deserializing header: invalid JSON ({path}): {error}") from error
    tensors.pop("__metadata__", None)
    end = 0
    for begin, stop in sorted(entry["data_offsets"] for entry in tensors.values()):
        if begin != end or stop < begin:
            raise SafetensorError(f"Error while deserializing header: invalid offset ({path})")
        end = stop
    if 8 + length + end != size:
        raise SafetensorError(f"Error while deserializing header: incomplete metadata, file not fully covered ({path})")
    return tensors
