"""The strict reading of safetensors headers: each rule by a header that breaks it alone."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from sparkops.node import safetensors
from sparkops.node.safetensors import BadFile, check_whole, parse, read_header


def tensor(dtype: Any = "F32", shape: Any = (2, 3), at: Any = (0, 24)) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": at}


def packed(header: Any, data: int = 0) -> bytes:
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(raw).to_bytes(8, "little") + raw + b"\0" * data


GOOD: list[tuple[dict[str, Any], int]] = [
    ({}, 0),
    ({"__metadata__": {"format": "pt"}}, 0),
    ({"a": tensor()}, 24),
    ({"scalar": tensor("BF16", [], [0, 2])}, 2),
    ({"none": tensor("F32", [0, 7], [0, 0]), "a": tensor()}, 24),
    ({"b": tensor(at=[24, 48]), "a": tensor(), "end": tensor("U8", [0], [48, 48])}, 48),
    ({"fp4": tensor("F4", [3, 2], [0, 3])}, 3),
    # No rule ties a tensor's place to the size of its elements.
    ({"odd": tensor("U8", [1], [0, 1]), "a": tensor(at=[1, 25])}, 25),
    ({"é\u4e2d\U0001f600": tensor()}, 24),
]


@pytest.mark.parametrize(("header", "data"), GOOD)
def test_good(tmp_path: Path, header: dict[str, Any], data: int) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(packed(header, data))
    found, length = read_header(str(path))
    assert found == json.loads(json.dumps(header))
    assert path.stat().st_size == 8 + length + data
    assert check_whole(str(path)) == len(header) - ("__metadata__" in header)
    path.write_bytes(packed(json.dumps(header).encode() + b"   \n", data))
    assert check_whole(str(path)) == len(header) - ("__metadata__" in header)


BAD: list[tuple[Any, str]] = [
    # Not the JSON it must be.
    (b"", "no JSON"),
    (b"{", "no JSON"),
    (b"[]", "no JSON object"),
    (b"null", "no JSON object"),
    (b' {"a": 1}', "does not start with {"),
    (b'{"a\xff": 1}', "no UTF-8"),
    (json.dumps({"a": tensor()}).encode("utf-16"), "no UTF-8"),
    (b"\xef\xbb\xbf{}", "no JSON"),
    (b'{"a": ' + b"[" * 5_000_000, "nested too deep|no JSON"),
    (b'{"a":' * 200_000, "nested too deep|no JSON"),
    # Names.
    (b'{"a": 1, "b": 2, "a": 3}', "'a' is there twice"),
    (b'{"a": {"dtype": "U8", "dtype": "F32", "shape": [], "data_offsets": [0, 1]}}', "'dtype' is there twice"),
    (b'{"__metadata__": {"k": "1", "k": "2"}}', "'k' is there twice"),
    (b'{"\\ud800": 1}', "no text"),
    ({"__metadata__": {"format": 1}}, "__metadata__ is no mapping"),
    ({"__metadata__": []}, "__metadata__ is no mapping"),
    # What a tensor says of itself.
    ({"a": 1}, "'a' is no dtype, shape and data_offsets"),
    ({"a": None}, "'a' is no dtype, shape and data_offsets"),
    ({"a": []}, "'a' is no dtype, shape and data_offsets"),
    ({"a": {"dtype": "F32", "shape": []}}, "'a' has no data_offsets"),
    ({"a": {"shape": [], "data_offsets": [0, 0]}}, "'a' has no dtype"),
    ({"a": {**tensor(), "stride": [1]}}, "'a' is no dtype, shape and data_offsets"),
    ({"a": tensor("F33")}, "'a' has the unknown dtype 'F33'"),
    ({"a": tensor("dtype")}, "'a' has the unknown dtype 'dtype'"),
    ({"a": tensor(["F32"])}, "'a' is no dtype"),
    ({"a": tensor(None)}, "'a' has the unknown dtype"),
    ({"a": tensor(shape="23")}, "'a' is no dtype, shape"),
    ({"a": tensor(shape={"0": 1})}, "'a' is no dtype, shape"),
    ({"a": tensor(shape=[2, -3])}, "no list of sizes"),
    ({"a": tensor(shape=[2, True])}, "no list of sizes"),
    ({"a": tensor(shape=[2, "3"])}, "no list of sizes"),
    ({"a": tensor(shape=[2, [3]])}, "no list of sizes"),
    (b'{"a": {"dtype": "F32", "shape": [2.0, 3], "data_offsets": [0, 24]}}', "2.0 is no size"),
    (b'{"a": {"dtype": "F32", "shape": [1e999], "data_offsets": [0, 24]}}', "1e999 is no size"),
    (b'{"a": {"dtype": "F32", "shape": [NaN], "data_offsets": [0, 24]}}', "NaN is no size"),
    (b'{"a": {"dtype": "F32", "shape": [' + b"9" * 3_000_000 + b'], "data_offsets": [0, 24]}}', "3,000,000 digits"),
    ({"a": tensor(shape=[2**62, 2**62])}, "more than 64 bits"),
    ({"a": tensor(shape=[2**63] * 50_000)}, "more than 64 bits"),
    ({"a": tensor("F4", [3], [0, 2])}, "ends within a byte"),
    # Where it lies.
    ({"a": tensor(at=[0])}, "data_offsets of two numbers"),
    ({"a": tensor(at=[0, 12, 24])}, "data_offsets of two numbers"),
    ({"a": tensor(at=24)}, "data_offsets of two numbers"),
    ({"a": tensor(at="ab")}, "data_offsets of two numbers"),
    ({"a": tensor(at=[False, 24])}, "data_offsets of two numbers"),
    ({"a": tensor(at=[24, 0])}, "begins at 24 and ends at 0"),
    ({"a": tensor(at=[-24, 0])}, "begins at -24"),
    ({"a": tensor(at=[0, 23])}, r"'a' \(F32 \[2, 3\]\) needs 24 bytes and has 23"),
    ({"a": tensor(at=[4, 28])}, "a gap of 4 bytes between the header and 'a'"),
    ({"a": tensor(), "b": tensor(at=[32, 56])}, "a gap of 8 bytes between 'a' and 'b'"),
    ({"a": tensor(), "b": tensor(at=[16, 40])}, "'a' and 'b' overlap by 8 bytes"),
    ({"a": tensor(), "b": tensor()}, "'a' and 'b' overlap by 24 bytes"),
    ({"a": tensor(), "none": tensor(shape=[0], at=[8, 8])}, "overlap"),
]


@pytest.mark.parametrize(("header", "message"), BAD)
def test_bad(header: Any, message: str) -> None:
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    started = time.process_time()
    with pytest.raises(BadFile, match=message) as caught:
        parse(raw)
    assert time.process_time() - started < 2
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "truncated: 0 bytes"),
        (b"\x02\0\0", "truncated: 3 bytes"),
        (packed({"a": tensor()}, 24)[:50], "truncated: 50 bytes, less than its header"),
        (packed({"a": tensor()}, 23), "truncated: 9. of 9. bytes"),
        (packed({"a": tensor()}, 25), "1 bytes longer than its header says"),
        (b"\xff" * 8 + b"{}", "a header of 18,446,744,073,709,551,615 bytes"),
        ((2**30).to_bytes(8, "little") + b"{}", "a header of 1,073,741,824 bytes"),
        ((99_999_999).to_bytes(8, "little") + b"{}", "truncated"),
        (b"<!DOCTYPE html><html>", "not a safetensors file"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00", "not a safetensors file"),
    ],
)
def test_bad_files(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(content)
    with pytest.raises(BadFile, match=message):
        check_whole(str(path))


def test_a_hostile_length_allocates_nothing(tmp_path: Path) -> None:
    import tracemalloc

    path = tmp_path / "x.safetensors"
    path.write_bytes((95_000_000).to_bytes(8, "little") + b"{}")
    tracemalloc.start()
    try:
        with pytest.raises(BadFile):
            read_header(str(path))
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path):
        with pytest.raises(BadFile, match="not a regular file"):
            read_header(str(path))
    with pytest.raises(FileNotFoundError):
        read_header(str(tmp_path / "gone"))


def test_names_are_shown_harmlessly() -> None:
    with pytest.raises(BadFile) as caught:
        parse(json.dumps({"\x1b[31mred\n": 1}).encode())
    assert "\x1b" not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert safetensors.shown("x" * 1000) == f"'{'x' * 117}...'"


def test_collecting_garbage_goes_on_afterwards() -> None:
    import gc

    assert gc.isenabled()
    parse(b"{}")
    assert gc.isenabled()
    with pytest.raises(BadFile):
        parse(b"[]")
    assert gc.isenabled()
