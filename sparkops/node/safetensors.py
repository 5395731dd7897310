"""The header of a safetensors file: what tensors there are and where, without reading any of them.

The format: 8 bytes little-endian length, that many bytes of JSON, then the tensors' bytes.
"""

from __future__ import annotations

import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any

# The format's own limit (100 MB), so that a damaged length asks for no more memory.
LARGEST_HEADER = 100_000_000


class BadFile(ValueError):
    """The file is no whole safetensors file; the message says what is wrong with it."""


class Passing:
    """A file that is read in passing: its pages leave the page cache again, as the GPU shares that memory.

    Pages that others (an engine that maps the file) use stay: DONTNEED leaves them alone.
    """

    def __init__(self, path: str) -> None:
        self.path = path

    def __enter__(self) -> IO[bytes]:
        self.file = open(self.path, "rb", buffering=0)
        # No read-ahead: it would bring in pages that nobody asked for.
        os.posix_fadvise(self.file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
        return self.file

    def __exit__(self, *_: object) -> None:
        # One page more: a page that is named in part is kept.
        end = self.file.tell() + os.sysconf("SC_PAGE_SIZE")
        os.posix_fadvise(self.file.fileno(), 0, end, os.POSIX_FADV_DONTNEED)
        self.file.close()


def _exactly(file: IO[bytes], count: int) -> bytes:
    """An unbuffered read may stop early (it always does after 2 GiB)."""
    pieces = []
    while count > 0 and (piece := file.read(count)):
        pieces.append(piece)
        count -= len(piece)
    return b"".join(pieces)


def read_header(path: str) -> tuple[dict[str, Any], int]:
    """{tensor: {"dtype", "shape", "data_offsets"}} (and "__metadata__") and the header's length in bytes, without
    the 8 before it. Raises BadFile, OSError.
    """
    size = os.path.getsize(path)
    with Passing(path) as file:
        length = int.from_bytes(_exactly(file, 8), "little")
        if size < 8 or length > size - 8:
            raise BadFile(f"truncated: {size:,} bytes, less than its header")
        if length > LARGEST_HEADER:
            raise BadFile(f"not a safetensors file: a header of {length:,} bytes")
        try:
            header = json.loads(_exactly(file, length))
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
