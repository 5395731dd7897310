"""Safetensors files that are a header and a hole: true to a reader of headers, next to nothing on disk.

Format: 8 bytes little-endian length of the header, the header (JSON, padded with spaces to a multiple of 8), the data.
"""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path
from typing import NamedTuple

from .makeup import Tensor

BYTES = {"F32": 4, "BF16": 2, "F8_E4M3": 1, "U8": 1}
# The safetensors library lays tensors out by falling alignment of their dtype, then by name; with this order the NVFP4
# file's header has the published 17,583,240 bytes.
DTYPE_ORDER = {"F32": 0, "BF16": 1, "F8_E4M3": 2, "U8": 3}


class Header(NamedTuple):
    """One file to be: its header as JSON bytes, and how many bytes of tensors follow."""

    json: bytes
    data_bytes: int


def size(tensor: Tensor) -> int:
    """Bytes that a tensor takes."""
    _, dtype, shape = tensor
    return math.prod(shape) * BYTES[dtype]


def header(tensors: list[Tensor]) -> Header:
    """The header of a file that holds `tensors`."""
    entries: dict[str, object] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for tensor in sorted(tensors, key=lambda tensor: (DTYPE_ORDER[tensor[1]], tensor[0])):
        name, dtype, shape = tensor
        end = offset + size(tensor)
        entries[name] = {"dtype": dtype, "shape": shape, "data_offsets": (offset, end)}
        offset = end
    text = json.dumps(entries, separators=(",", ":")).encode()
    return Header(text + b" " * (-len(text) % 8), offset)


def write_sparse(path: Path, head: Header) -> None:
    """Write the header and leave a hole of the data's size behind it."""
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(head.json)))
        file.write(head.json)
        file.truncate(8 + len(head.json) + head.data_bytes)


def shards(tensors: list[Tensor], count: int) -> dict[str, list[Tensor]]:
    """`tensors`, in order, over `count` files of about the same size: file name -> its tensors."""
    total = sum(map(size, tensors))
    files: dict[str, list[Tensor]] = {
        f"model-{number:05}-of-{count:05}.safetensors": [] for number in range(1, count + 1)
    }
    names = list(files)
    written = 0
    for tensor in tensors:
        files[names[min(written * count // total, count - 1)]].append(tensor)
        written += size(tensor)
    return files


def index(files: dict[str, list[Tensor]]) -> dict[str, object]:
    """model.safetensors.index.json: which file holds each tensor, and the bytes of all together."""
    weight_map = {name: file for file, tensors in files.items() for name, _, _ in tensors}
    total = sum(size(tensor) for tensors in files.values() for tensor in tensors)
    return {"metadata": {"total_size": total}, "weight_map": dict(sorted(weight_map.items()))}
