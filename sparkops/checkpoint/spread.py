"""Who fetches a checkpoint, and who copies it from whom: a tree that doubles with each round.

nodes: by name, what `weights_look` found: present, staged (bytes), fabric and management (addresses).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Nodes = Mapping[str, Mapping[str, Any]]


def have(nodes: Nodes) -> list[str]:
    """The nodes that have it whole, as files of its folder, so that others can copy it."""
    return [name for name, one in nodes.items() if one.get("present") and not one.get("leads_out")]


def lack(nodes: Nodes) -> list[str]:
    """The nodes that do not; those that were not looked at do not count."""
    return [name for name, one in nodes.items() if one.get("present") is False]


def fetcher(nodes: Nodes) -> str | None:
    """The one node that fetches it from the hub: where most has come already. None: a node has it, or all have."""
    lacking = lack(nodes)
    if have(nodes) or not lacking:
        return None
    return max(lacking, key=lambda name: (nodes[name].get("staged", 0), -lacking.index(name)))


def pairs(sources: Sequence[str], takers: Sequence[str]) -> list[tuple[str, str]]:
    """One round, (source, taker): each source serves one at a time, so what has it doubles."""
    return list(zip(sources, takers, strict=False))


def rounds(sources: Sequence[str], takers: Sequence[str]) -> list[list[tuple[str, str]]]:
    """The whole tree, as it comes when no node fails on the way."""
    found, there, left = [], list(sources), list(takers)
    while there and left:
        found.append(pairs(there, left))
        there += left[: len(found[-1])]
        left = left[len(found[-1]) :]
    return found


def copies(nodes: Nodes) -> dict[str, dict[str, dict[str, str]]]:
    """The next round as the playbook carries it out.

    offers: {source: {address, to}}; takes: {taker: {source, address}} where `address` is the node's own.
    """
    offers, takes = {}, {}
    for source, taker in pairs(have(nodes), lack(nodes)):
        # The fabric only between two nodes that are both in it.
        network = "fabric" if nodes[source].get("fabric") and nodes[taker].get("fabric") else "management"
        ends = {"address": str(nodes[source][network]), "to": str(nodes[taker][network])}
        offers[source] = ends
        takes[taker] = {"source": source, "address": ends["to"]}
    return {"offers": offers, "takes": takes}
