"""Lookups that make lists of lists: what stands behind `with_items`, `with_dict`, `with_nested` and their kind."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable, Mapping
from typing import Any

from sparkops.errors import InputError
from sparkops.playbook.containers import flatten, subelements

_WORDS = re.compile(r"(start|end|count|stride|format)=(\S+)")
_SHORT = re.compile(r"(?:(-?\w+)-)?(-?\w+)(?:/(-?\w+))?(?::(\S+))?")


def _dict(_: Any, terms: list[Any]) -> list[Any]:
    for term in terms:
        if not isinstance(term, Mapping):
            raise InputError(f"'dict' takes a mapping, not {term!r}")
    return [{"key": key, "value": value} for mapping in terms for key, value in mapping.items()]


def _nested(_: Any, terms: list[Any]) -> list[Any]:
    if not terms:
        raise InputError("'nested' takes at least one list")
    return [flatten(list(row)) for row in itertools.product(*terms)]


def _together(_: Any, terms: list[Any]) -> list[Any]:
    if not terms:
        raise InputError("'together' takes at least one list")
    return [flatten(list(row), skip_nulls=False) for row in itertools.zip_longest(*terms)]


def _subelements(_: Any, terms: list[Any]) -> list[Any]:
    """(item without the list, element of the list), as `with_subelements` has it."""
    if len(terms) not in (2, 3) or not isinstance(terms[1], str):
        raise InputError("'subelements' takes a list, the key of the lists in it, and a mapping of skip_missing")
    items, path, *options = terms
    skip = bool(options and isinstance(options[0], Mapping) and options[0].get("skip_missing"))
    if isinstance(items, Mapping):
        items = list(items.values())
    kept = [item for item in items if not (isinstance(item, Mapping) and item.get("skipped"))]
    return [[_without(item, path.split(".")), element] for item, element in subelements(kept, path, skip)]


def _without(item: Mapping[Any, Any], path: list[str]) -> dict[Any, Any]:
    first, *rest = path
    if not rest:
        return {key: value for key, value in item.items() if key != first}
    return {key: _without(value, rest) if key == first else value for key, value in item.items()}


def _sequence(_: Any, terms: list[Any], **options: Any) -> list[Any]:
    """Numbers as texts: "start=1 end=9 stride=2 format=node%02d", "count=3", or short "1-9/2:node%02d"."""
    if not terms:
        return _numbers(options)
    return [number for term in terms for number in _numbers({**options, **_parsed(str(term))})]


def _parsed(term: str) -> dict[str, Any]:
    words = term.split()
    if all(_WORDS.fullmatch(word) for word in words):
        return dict(word.split("=", 1) for word in words)
    found = _SHORT.fullmatch(term)
    if not found:
        raise InputError(f"'sequence' does not read {term!r}", hint="for example 'start=1 end=9 format=node%02d'")
    names = ("start", "end", "stride", "format")
    return {name: value for name, value in zip(names, found.groups(), strict=True) if value}


def _numbers(given: dict[str, Any]) -> list[Any]:
    unknown = given.keys() - {"start", "end", "count", "stride", "format"}
    if unknown or ("count" in given) == ("end" in given):
        raise InputError("'sequence' takes start, end or count, stride and format")
    try:
        start, stride = int(given.get("start", 1)), int(given.get("stride", 1))
        end = int(given["end"]) if "end" in given else start + stride * (int(given["count"]) - 1)
    except ValueError as error:
        raise InputError(f"'sequence' takes numbers: {error}") from None
    if "count" in given and int(given["count"]) == 0:
        return []
    if stride == 0 or (end - start) * stride < 0:
        raise InputError("'sequence' never ends", hint="a negative stride counts down")
    return [str(given.get("format", "%d")) % number for number in range(start, end + (1 if stride > 0 else -1), stride)]


LOOKUPS: dict[str, Callable[..., list[Any]]] = {
    "dict": _dict, "items": lambda _, terms: flatten(terms, levels=1, skip_nulls=False),
    "list": lambda _, terms: terms, "indexed_items": lambda _, terms: [
        [index, item] for index, item in enumerate(flatten(terms, levels=1, skip_nulls=False))
    ],
    "nested": _nested, "together": _together, "subelements": _subelements, "sequence": _sequence,
    "random_choice": lambda _, terms: [random.choice(terms)] if terms else [],
}  # fmt: skip
