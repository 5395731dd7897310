"""The header of a safetensors file: what tensors there are and where, without reading any of them.

The format: 8 bytes little-endian length, that many bytes of JSON, then the tensors' bytes.
"""

from __future__ import annotations

import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# The format's own limit (100 MB), so that a damaged length asks for no more memory.
LARGEST_HEADER = 100_000_000


class BadFile(ValueError):
    """The file is no whole safetensors file; the message says what is wrong with it."""


def read_header(path: str) -> tuple[dict[str, Any], int]:
    """{tensor: {"dtype", "shape", "data_offsets"}} (and "__metadata__") and the header's length in bytes, without
    the 8 before it. Raises BadFile, OSError.
    """
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > size - 8:
            raise BadFile(f"truncated: {size:,} bytes, less than its header")
        if length > LARGEST_HEADER:
            raise BadFile(f"not a safetensors file: a header of {length:,} bytes")
        try:
            header = json.loads(file.read(length))
        except ValueError:
            raise BadFile("not a safetensors file: its header is no JSON") from None
    if not isinstance(header, dict):
        raise BadFile("not a safetensors file: its header is no JSON object")
    return header, length


def data_size(header: dict[str, Any]) -> int:
    """Bytes that the tensors of a header take. Raises BadFile."""
    try:
        ends = [tensor["data_offsets"][1] for name, tensor in header.items() if name != "__metadata__"]
        return int(max(ends, default=0))
    except (TypeError, KeyError, IndexError, ValueError):
        raise BadFile("not a safetensors file: a tensor without data_offsets") from None


def check_whole(path: str) -> int:
    """How many tensors a file has, when its size is what its header says. Raises BadFile, OSError."""
    header, length = read_header(path)
    wanted = 8 + length + data_size(header)
    size = os.path.getsize(path)
    if size < wanted:
        raise BadFile(f"truncated: {size:,} of {wanted:,} bytes")
    if size > wanted:
        raise BadFile(f"{size - wanted:,} bytes longer than its header says")
    return len(header) - ("__metadata__" in header)
