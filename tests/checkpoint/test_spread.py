"""Who fetches, and who copies from whom."""

from __future__ import annotations

import math

import pytest

from sparkops.checkpoint.spread import copies, fetcher, rounds


def node(present: bool, staged: int = 0, fabric: str = "", management: str = "10.0.0.9") -> dict[str, object]:
    return {"present": present, "staged": staged, "fabric": fabric, "management": management}


@pytest.mark.parametrize("takers", [*range(9), 31, 32, 100])
@pytest.mark.parametrize("sources", [1, 2, 5])
def test_what_has_it_doubles_with_each_round(sources: int, takers: int) -> None:
    have, lack = [f"s{n}" for n in range(sources)], [f"t{n}" for n in range(takers)]
    tree = rounds(have, lack)
    assert len(tree) == math.ceil(math.log2((sources + takers) / sources))
    assert [taker for pairs in tree for _, taker in pairs] == lack
    there = set(have)
    for pairs in tree:
        serving = [source for source, _ in pairs]
        # Each serves one at a time, and only what it had before this round.
        assert len(set(serving)) == len(serving)
        assert set(serving) <= there
        there |= {taker for _, taker in pairs}


def test_without_a_source_there_is_no_tree() -> None:
    assert rounds([], ["a"]) == []
    assert copies({"a": node(False)}) == {"offers": {}, "takes": {}}


def test_the_one_that_has_begun_fetches() -> None:
    assert fetcher({"a": node(False), "b": node(False, 7), "c": node(False, 3)}) == "b"
    assert fetcher({"a": node(False), "b": node(False)}) == "a"
    assert fetcher({"a": node(True), "b": node(False)}) is None
    assert fetcher({"a": node(True)}) is None
    assert fetcher({}) is None


def test_links_to_elsewhere_are_no_source() -> None:
    """As in a hub's cache; what no node can give is fetched again."""
    linked = {**node(True), "leads_out": "a.safetensors"}
    assert copies({"a": linked, "b": node(False)})["takes"] == {}
    assert fetcher({"a": linked, "b": node(False)}) == "b"
    assert copies({"a": linked, "b": node(False), "c": node(True)})["takes"]["b"]["source"] == "c"


def test_a_node_that_was_not_looked_at_takes_no_part() -> None:
    assert copies({"a": node(True), "b": {}, "c": node(False)})["takes"].keys() == {"c"}


@pytest.mark.parametrize(
    ("source", "taker", "address", "to"),
    [
        ("192.168.100.1", "192.168.100.2", "192.168.100.1", "192.168.100.2"),
        ("192.168.100.1", "", "10.0.0.1", "10.0.0.2"),
    ],
    ids=["both in the fabric", "one of them"],
)
def test_the_fabric_is_for_two_that_are_in_it(source: str, taker: str, address: str, to: str) -> None:
    nodes = {"a": node(True, 0, source, "10.0.0.1"), "b": node(False, 0, taker, "10.0.0.2")}
    assert copies(nodes) == {
        "offers": {"a": {"address": address, "to": to}},
        "takes": {"b": {"source": "a", "address": to}},
    }
