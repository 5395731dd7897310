"""The header of a safetensors file: what tensors there are and where, without reading any of them.

The format: 8 bytes little-endian length, that many bytes of JSON ({name: {"dtype", "shape", "data_offsets"}}, perhaps
"__metadata__": {text: text}), then the tensors' bytes, end to end. Source: the format's README, whose rules are held
here to the letter; a file that the engine would read otherwise, or not at all, is a BadFile.
"""

from __future__ import annotations

import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any, NoReturn

# The format's own limit (100 MB), so that a damaged length asks for no more memory.
LARGEST_HEADER = 100_000_000
# Sizes are 64 bits wide in the format; 20 digits write the largest.
LARGEST_SIZE = 2**64 - 1
LONGEST_NUMBER = 20

METADATA = "__metadata__"
FIELDS = ("dtype", "shape", "data_offsets")
# Bits of an element. No rule ties a tensor's place to its element's size; only that it fills whole bytes.
BITS = {
    **{"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6},
    **{"BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8},
    **{"U16": 16, "I16": 16, "F16": 16, "BF16": 16},
    **{"U32": 32, "I32": 32, "F32": 32},
    **{"U64": 64, "I64": 64, "F64": 64, "C64": 64},
}


class BadFile(ValueError):
    """The file is no whole safetensors file; the message says what is wrong with it."""


class Passing:
    """A file that is read in passing: its pages leave the page cache again, as the GPU shares that memory.

    Pages that others (an engine that maps the file) use stay: DONTNEED leaves them alone.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.advise = getattr(os, "posix_fadvise", None)  # macOS, where only a controller runs, has none

    def __enter__(self) -> IO[bytes]:
        self.file = open(self.path, "rb", buffering=0)
        # No read-ahead: it would bring in pages that nobody asked for.
        if self.advise:
            self.advise(self.file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
        return self.file

    def __exit__(self, *_: object) -> None:
        # One page more: a page that is named in part is kept.
        end = self.file.tell() + os.sysconf("SC_PAGE_SIZE")
        if self.advise:
            self.advise(self.file.fileno(), 0, end, os.POSIX_FADV_DONTNEED)
        self.file.close()


def exactly(file: IO[bytes], count: int) -> bytes:
    """`count` bytes, or fewer at the end of the file. An unbuffered read may stop early (it does after 2 GiB)."""
    pieces = []
    while count > 0 and (piece := file.read(count)):
        pieces.append(piece)
        count -= len(piece)
    return b"".join(pieces)


def read_header(path: str) -> tuple[dict[str, Any], int]:
    """{tensor: {"dtype", "shape", "data_offsets"}} (and "__metadata__") and the header's length in bytes, without
    the 8 before it. Raises BadFile, OSError.
    """
    import stat

    if not stat.S_ISREG(os.stat(path).st_mode):
        raise BadFile("not a safetensors file: not a regular file")
    with Passing(path) as file:
        length = header_length(exactly(file, 8), os.fstat(file.fileno()).st_size)
        raw = exactly(file, length)
    if len(raw) < length:
        raise BadFile("truncated while it was read")
    return parse(raw), length


def header_length(first: bytes, size: int) -> int:
    """The header's length in bytes, from the file's first 8 bytes and its size. Raises BadFile."""
    length = int.from_bytes(first, "little")
    if len(first) < 8 or size < 8:
        raise BadFile(f"truncated: {size:,} bytes, less than its header")
    if length > LARGEST_HEADER:
        raise BadFile(f"not a safetensors file: a header of {length:,} bytes")
    if length > size - 8:
        raise BadFile(f"truncated: {size:,} bytes, less than its header")
    return length


def parse(raw: bytes) -> dict[str, Any]:
    """A header's JSON, with every rule of the format checked but the file's size. Raises BadFile.

    124,756 tensors (17.6 MB) take a third of a second of CPU.
    """
    import gc

    # Half a million small objects come and none goes: collecting meanwhile would more than double the time.
    collecting = gc.isenabled()
    gc.disable()
    try:
        return _parse(raw)
    finally:
        if collecting:
            gc.enable()


def _parse(raw: bytes) -> dict[str, Any]:
    try:
        header = json.loads(
            raw.decode("utf-8"), object_pairs_hook=_once, parse_int=_number, parse_float=_no, parse_constant=_no
        )
    except BadFile:
        raise
    except UnicodeDecodeError:
        raise BadFile("not a safetensors file: its header is no UTF-8") from None
    except ValueError:
        raise BadFile("not a safetensors file: its header is no JSON") from None
    except RecursionError:
        raise BadFile("not a safetensors file: its header is nested too deep") from None
    if not isinstance(header, dict):
        raise BadFile("not a safetensors file: its header is no JSON object")
    if raw[:1] != b"{":
        raise BadFile("not a safetensors file: its header does not start with {")
    _check_texts(header)
    _check_places(header)
    return header


def data_size(header: dict[str, Any]) -> int:
    """Bytes that the tensors of a parsed header take."""
    return max((entry["data_offsets"][1] for name, entry in header.items() if name != METADATA), default=0)


def check_size(header: dict[str, Any], length: int, size: int) -> None:
    """Raises BadFile unless a file with this header (of `length` bytes) has the `size` that it says."""
    wanted = 8 + length + data_size(header)
    if size < wanted:
        raise BadFile(f"truncated: {size:,} of {wanted:,} bytes")
    if size > wanted:
        raise BadFile(f"{size - wanted:,} bytes longer than its header says")


def check_whole(path: str) -> int:
    """How many tensors a file has, when its size is what its header says. Raises BadFile, OSError."""
    header, length = read_header(path)
    check_size(header, length, os.path.getsize(path))
    return len(header) - (METADATA in header)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose names differ."""
    made = dict(pairs)
    if len(made) < len(pairs):
        for name, _ in pairs:
            if name not in made:
                raise BadFile(f"not a safetensors file: {shown(name)} is there twice")
            del made[name]
    return made


def _number(text: str) -> int:
    # Before Python 3.11 int() takes a time that grows with the square of the digits.
    if len(text) > LONGEST_NUMBER:
        raise BadFile(f"not a safetensors file: a number of {len(text):,} digits")
    return int(text)


def _no(text: str) -> NoReturn:
    raise BadFile(f"not a safetensors file: {text[:20]} is no size")


def _check_texts(header: dict[str, Any]) -> None:
    """Names and metadata are text that can be written again: JSON's escapes can make halves of a character."""
    metadata = header.get(METADATA, {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise BadFile(f"not a safetensors file: its {METADATA} is no mapping of texts")
    try:
        "".join(header).encode()
        "".join([*metadata, *metadata.values()]).encode()
    except UnicodeEncodeError:
        raise BadFile("not a safetensors file: a name in its header is no text") from None


def _check_places(header: dict[str, Any]) -> None:
    """Each tensor takes what its dtype and shape need, and the tensors lie end to end from 0."""
    places = [(*_place(name, entry), name) for name, entry in header.items() if name != METADATA]
    places.sort()
    at = 0
    before = "the header"
    for begin, end, name in places:
        if begin > at:
            raise BadFile(f"not a safetensors file: a gap of {begin - at:,} bytes between {before} and {shown(name)}")
        if begin < at:
            raise BadFile(f"not a safetensors file: {before} and {shown(name)} overlap by {at - begin:,} bytes")
        at = end
        before = shown(name) if begin != end else before


def _place(name: str, entry: Any) -> tuple[int, int]:
    """Where a tensor begins and ends. Raises BadFile."""
    try:
        dtype, shape, (begin, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
        if len(entry) != 3 or type(shape) is not list or type(begin) is not int or type(end) is not int:
            raise TypeError
        bits = BITS[dtype]
    except KeyError as error:
        missing = error.args[0] in FIELDS and error.args[0] not in entry
        what = f"no {error.args[0]}" if missing else f"the unknown dtype {shown(str(error.args[0]))}"
        raise BadFile(f"not a safetensors file: {shown(name)} has {what}") from None
    except (TypeError, ValueError):
        raise BadFile(
            f"not a safetensors file: {shown(name)} is no dtype, shape and data_offsets of two numbers"
        ) from None
    for length in shape:
        if type(length) is not int or length < 0:
            raise BadFile(f"not a safetensors file: {shown(name)} has a shape that is no list of sizes")
        bits *= length
        if bits > 8 * LARGEST_SIZE:
            raise BadFile(f"not a safetensors file: {shown(name)} has a shape of more than 64 bits")
    if bits % 8:
        raise BadFile(f"not a safetensors file: {shown(name)} ends within a byte")
    if not 0 <= begin <= end <= LARGEST_SIZE:
        raise BadFile(f"not a safetensors file: {shown(name)} begins at {begin:,} and ends at {end:,}")
    if end - begin != bits // 8:
        raise BadFile(
            f"not a safetensors file: {shown(name)} ({dtype} {shape[:8]}) needs {bits // 8:,} bytes and has "
            f"{end - begin:,}"
        )
    return begin, end


def shown(name: str) -> str:
    """A name for a message: quoted, its control characters escaped, and not too long."""
    return ascii(name if len(name) <= 120 else f"{name[:117]}...")
