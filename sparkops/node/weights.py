"""How much of a checkpoint is on the disk, and how much of it will be resident: from names, sizes and 8 bytes a file.

A *.safetensors file is 8 bytes, the header's length in them, the header, and tensors without a hole. So what stays in
memory is known without parsing headers, of which one may have 17.6 MB.
"""

from __future__ import annotations

import os

from sparkops.node import safetensors
from sparkops.node.checkpoint import CONFIG, INDEX, read_json, weight_map

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def look(path: str) -> dict[str, Any]:
    """present: it is whole, by names. resident: bytes of the tensors that the engine reads, None: not to be told.
    held: bytes that a part of it takes on the disk (0 when it is whole).
    """
    said: dict[str, Any] = {"path": path, "present": False, "resident": None, "held": 0}
    try:
        names = set(os.listdir(path))
        weights = {name for name in names if name.endswith(".safetensors")}
        listed = named(os.path.join(path, INDEX)) if INDEX in names else weights
        if not weights or CONFIG not in names or listed - names:
            return {**said, "held": taken(path)}
        resident = sum(tensor_bytes(os.path.join(path, name)) for name in listed)
    except (FileNotFoundError, NotADirectoryError):
        return said
    except (OSError, safetensors.BadFile):
        # What is wrong with it, checkpoint_present says.
        return {**said, "present": True}
    return {**said, "present": True, "resident": resident}


def named(index: str) -> set[str]:
    """The files that an index names. Raises BadFile, OSError."""
    return set(weight_map(read_json(index, safetensors.LARGEST_HEADER)).values())


def tensor_bytes(path: str) -> int:
    """Bytes of a file behind its header. Raises BadFile, OSError."""
    size = os.path.getsize(path)
    with safetensors.Passing(path) as file:
        return size - 8 - safetensors.header_length(safetensors.exactly(file, 8), size)


def taken(folder: str) -> int:
    """Bytes that a folder takes on its disk."""
    found = 0
    for top, _, names in os.walk(folder):
        for name in names:
            try:
                found += os.lstat(os.path.join(top, name)).st_blocks * 512
            except OSError:
                continue
    return found
