"""Headers that are made up: valid ones come back as they were, mutated ones are read or refused, never worse."""

from __future__ import annotations

import json
import random
import time
import tracemalloc
from math import prod
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparkops.node.safetensors import BITS, BadFile, data_size, parse

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30).filter(
    lambda name: name != "__metadata__"
)
shapes = st.lists(st.integers(0, 300), max_size=4)
tensors = st.tuples(st.sampled_from(sorted(BITS)), shapes).filter(lambda pair: prod(pair[1]) * BITS[pair[0]] % 8 == 0)
metadata = st.none() | st.dictionaries(names, names, max_size=3)


def laid_out(held: dict[str, tuple[str, list[int]]], order: list[str], about: dict[str, str] | None) -> dict[str, Any]:
    """A header whose tensors lie end to end in `order`."""
    header: dict[str, Any] = {} if about is None else {"__metadata__": about}
    at = 0
    for name in order:
        dtype, shape = held[name]
        end = at + prod(shape) * BITS[dtype] // 8
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, end]}
        at = end
    return header


@given(st.dictionaries(names, tensors, max_size=12), metadata, st.randoms(use_true_random=False), st.booleans())
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
def test_valid_headers_come_back(
    held: dict[str, tuple[str, list[int]]], about: dict[str, str] | None, shuffle: random.Random, escaped: bool
) -> None:
    order = list(held)
    shuffle.shuffle(order)
    header = laid_out(held, order, about)
    written = list(header)
    shuffle.shuffle(written)
    raw = json.dumps({name: header[name] for name in written}, ensure_ascii=escaped).encode()
    found = parse(raw + b" " * (-len(raw) % 8))
    assert found == header
    assert data_size(found) == sum(prod(shape) * BITS[dtype] // 8 for dtype, shape in held.values())


PIECES = [
    *(b'"', b"{", b"}", b"[", b"]", b":", b",", b"\\", b"\\u0000", b"\\ud83d", b"\x00", b"\xff", b"\xc3"),
    *(b"-1", b"0", b"1e400", b"9" * 30, b"18446744073709551616", b"NaN", b"null", b"true", b"[" * 2000, b'{"a":' * 500),
    *(b'"F4"', b'"BF16"', b'"dtype"', b'"shape"', b'"data_offsets"', b'"__metadata__"', b" " * 100),
]
ROUNDS = 10_000


def mutated(raw: bytes, rng: random.Random) -> bytes:
    """A few bytes flipped, cut out, doubled, or replaced by something that JSON or the format cares about."""
    made = bytearray(raw)
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randrange(len(made) + 1)
        end = min(len(made), at + rng.choice((0, 1, 1, 3, 20)))
        kind = rng.randrange(4)
        if kind == 0 and at < len(made):
            made[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del made[at:end]
        elif kind == 2:
            made[at:at] = made[at:end]
        else:
            made[at:end] = rng.choice(PIECES)
    return bytes(made)


def test_mutated_headers_never_crash_hang_or_take_memory() -> None:
    rng = random.Random(5)
    held = {f"model.layers.{at}.weight": ("BF16", [at, 4]) for at in range(6)}
    raw = json.dumps(laid_out({**held, "x": ("F4", [2, 3])}, ["x", *held], {"format": "pt"})).encode()
    read = 0
    started = time.process_time()
    tracemalloc.start()
    try:
        for _ in range(ROUNDS):
            bad = mutated(raw, rng)
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            try:
                header = parse(bad)
            except BadFile as error:
                assert len(str(error)) < 500
            else:
                read += 1
                assert json.loads(bad) == header
            assert tracemalloc.get_traced_memory()[1] - before < 64 * len(bad) + 200_000
    finally:
        tracemalloc.stop()
    assert time.process_time() - started < 20
    # The mutations are neither all harmless nor all fatal.
    assert ROUNDS // 100 < read < ROUNDS // 2
