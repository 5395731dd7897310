from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkops.inventory.names import expand, is_address, short_name, split_port


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("web", ["web"]),
        ("web[1:3]", ["web1", "web2", "web3"]),
        ("web[01:10:3]", ["web01", "web04", "web07", "web10"]),
        ("n[08:11]", ["n08", "n09", "n10", "n11"]),
        ("x[a:f:2]y", ["xay", "xcy", "xey"]),
        ("[a:b][0:1]", ["a0", "a1", "b0", "b1"]),
        ("h[:2]", ["h0", "h1", "h2"]),
        ("h[5:5].lan", ["h5.lan"]),
    ],
)
def test_ranges(pattern: str, names: list[str]) -> None:
    assert expand(pattern) == names


@pytest.mark.parametrize(
    "pattern",
    [
        "w[1:]", "w[3:1]", "w[b:a]", "w[01:100]", "w[1:3:0]", "w[1:3:-1]", "w[1:x]", "w[]", "w[1]", "w[1:2",
        "w1:2]", "w[[1:2]]", "w[a:bc]", "w[1:999999999]", "w[0:9999][0:9999]", "w[1:2:3:4]", "w[²:3]",
    ],
)  # fmt: skip
def test_ranges_that_mean_nothing(pattern: str) -> None:
    with pytest.raises(ValueError):
        expand(pattern)


@given(st.integers(0, 300), st.integers(0, 300), st.integers(1, 9), st.integers(3, 6))
def test_a_padded_range_is_pythons_range(first: int, length: int, step: int, width: int) -> None:
    last = first + length
    names = expand(f"n[{first:0{width}}:{last:0{width}}:{step}]")
    assert names == [f"n{number:0{width}}" for number in range(first, last + 1, step)]


@given(st.text(alphabet="ab[]:019-", max_size=12))
def test_any_pattern_gives_names_or_a_value_error(pattern: str) -> None:
    try:
        names = expand(pattern)
    except ValueError:
        return
    assert names and len(set(names)) <= len(names)
    assert all("[" not in name for name in names)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("web", ("web", None)),
        ("web:2222", ("web", 2222)),
        ("web[1:3]:2222", ("web[1:3]", 2222)),
        ("web[1:3]", ("web[1:3]", None)),
        ("[fe80::1]:22", ("fe80::1", 22)),
        ("fe80::1", ("fe80::1", None)),
        ("10.0.0.1:22", ("10.0.0.1", 22)),
        ("a:b", ("a:b", None)),
    ],
)
def test_ports(text: str, parts: tuple[str, int | None]) -> None:
    assert split_port(text) == parts


def test_addresses_and_short_names() -> None:
    assert is_address("web-1.example.com") and is_address("::1") and not is_address("a:b") and not is_address("web*")
    assert (short_name("a.b.c"), short_name("10.0.0.1"), short_name("::1")) == ("a", "10.0.0.1", "::1")
