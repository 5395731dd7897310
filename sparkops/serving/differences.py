"""What differs between nodes that should be equal. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

HIDDEN = "(hidden "


@dataclass(frozen=True)
class Side:
    """A value, None where there is none, and the nodes that have it."""

    value: str | None
    nodes: list[str]


@dataclass(frozen=True)
class Difference:
    """An item and its values, the most common one first."""

    item: str
    sides: list[Side]


def differences(nodes: Mapping[str, Mapping[str, str | None]]) -> list[Difference]:
    """The items whose values are not the same on all nodes."""
    names = dict.fromkeys(name for items in nodes.values() for name in items)
    found = []
    for item in names:
        sides: dict[str | None, list[str]] = {}
        for node, items in nodes.items():
            sides.setdefault(items.get(item), []).append(node)
        if len(sides) > 1:
            ordered = sorted(sides.items(), key=lambda side: -len(side[1]))
            found.append(Difference(item, [Side(value, who) for value, who in _lettered(ordered)]))
    return found


def _lettered(sides: list[tuple[str | None, list[str]]]) -> list[tuple[str | None, list[str]]]:
    """Hidden values as letters: A, B ... say what is equal, and no digest leaves this process."""
    told = []
    letter = ord("A")
    for value, who in sides:
        if value is not None and value.startswith(HIDDEN):
            value, letter = f"{HIDDEN}{chr(letter)})", letter + 1
        told.append((value, who))
    return told
