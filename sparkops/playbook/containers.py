"""Ansible's filters for mappings and lists: combine, dict2items, flatten, union ..."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any

from sparkops.errors import InputError

_LIST_MERGES: dict[str, Callable[[list[Any], list[Any]], list[Any]]] = {
    "replace": lambda _, new: new,
    "keep": lambda old, _: old,
    "append": lambda old, new: old + new,
    "prepend": lambda old, new: new + old,
    "append_rp": lambda old, new: [item for item in old if item not in new] + new,
    "prepend_rp": lambda old, new: new + [item for item in old if item not in new],
}


def combine(*mappings: Any, recursive: bool = False, list_merge: str = "replace") -> dict[Any, Any]:
    """Mappings merged, later ones stronger; with `recursive` also inside."""
    if list_merge not in _LIST_MERGES:
        raise InputError(f"'combine' has no list_merge {list_merge!r}", hint=f"one of {', '.join(_LIST_MERGES)}")
    result: dict[Any, Any] = {}
    for mapping in flatten(list(mappings), levels=1):
        if not isinstance(mapping, Mapping):
            raise InputError(f"'combine' takes mappings, not {mapping!r}")
        result = _merged(result, mapping, recursive, list_merge)
    return result


def _merged(old: Mapping[Any, Any], new: Mapping[Any, Any], recursive: bool, list_merge: str) -> dict[Any, Any]:
    result = dict(old)
    for key, value in new.items():
        before = result.get(key)
        if recursive and isinstance(before, Mapping) and isinstance(value, Mapping):
            value = _merged(before, value, recursive, list_merge)
        elif isinstance(before, list) and isinstance(value, list):
            value = _LIST_MERGES[list_merge](before, value)
        result[key] = value
    return result


def dict2items(mapping: Any, key_name: str = "key", value_name: str = "value") -> list[dict[str, Any]]:
    if not isinstance(mapping, Mapping):
        raise InputError(f"'dict2items' takes a mapping, not {mapping!r}")
    return [{key_name: key, value_name: value} for key, value in mapping.items()]


def items2dict(items: Any, key_name: str = "key", value_name: str = "value") -> dict[Any, Any]:
    if not isinstance(items, (list, tuple)):
        raise InputError(f"'items2dict' takes a list, not {items!r}")
    try:
        return {item[key_name]: item[value_name] for item in items}
    except (KeyError, TypeError):
        raise InputError(f"'items2dict' takes a list of mappings with {key_name!r} and {value_name!r}") from None


def flatten(items: list[Any], levels: int | None = None, skip_nulls: bool = True) -> list[Any]:
    """Lists inside lists as one list, `levels` deep (None: all)."""
    result: list[Any] = []
    for item in items:
        if isinstance(item, (list, tuple)) and (levels is None or levels > 0):
            result += flatten(list(item), None if levels is None else levels - 1, skip_nulls)
        elif isinstance(item, (list, tuple)) or not (skip_nulls and item in (None, "None", "null")):
            result.append(item)
    return result


def subelements(items: Any, path: Any, skip_missing: bool = False) -> list[tuple[Any, Any]]:
    """(item, element) for each element of the list that `path` ("a.b") names in each item."""
    if not isinstance(items, (list, tuple, Mapping)):
        raise InputError(f"'subelements' takes a list or a mapping, not {items!r}")
    found: list[tuple[Any, Any]] = []
    for item in items.values() if isinstance(items, Mapping) else items:
        elements = item
        for key in path.split(".") if isinstance(path, str) else path:
            if not isinstance(elements, Mapping):
                raise InputError(f"'subelements': {key!r} is looked for in {elements!r}, which is no mapping")
            if key not in elements and not skip_missing:
                raise InputError(f"'subelements': {key!r} is missing in {elements!r}")
            elements = elements.get(key)
            if elements is None and skip_missing:
                elements = []
                break
        if not isinstance(elements, list):
            raise InputError(f"'subelements': {path!r} should be a list, and is {elements!r}")
        found += [(item, element) for element in elements]
    return found


def rekey_on_member(data: Any, key: str, duplicates: str = "error") -> dict[Any, Any]:
    if isinstance(data, str):
        raise InputError(f"'rekey_on_member' takes a list or a mapping, not {data!r}")
    result: dict[Any, Any] = {}
    for item in data.values() if isinstance(data, Mapping) else data:
        if item[key] in result and duplicates == "error":
            raise InputError(f"'rekey_on_member': {item[key]!r} is there twice")
        result[item[key]] = item
    return result


def once(items: Any) -> list[Any]:
    """Each item once, in order; items need not be hashable."""
    result: list[Any] = []
    seen: set[Any] = set()
    for item in items:
        try:
            new = item not in seen
            seen.add(item)
        except TypeError:
            new = item not in result
        if new:
            result.append(item)
    return result


def _those(items: Any, others: list[Any], inside: bool) -> list[Any]:
    """The items that are among the others, or those that are not; each once, in order."""
    return once(item for item in items if (item in others) == inside)


COLLECTION_FILTERS: dict[str, Callable[..., Any]] = {
    "combine": combine, "dict2items": dict2items, "items2dict": items2dict, "flatten": flatten,
    "subelements": subelements, "rekey_on_member": rekey_on_member,
    "union": lambda a, b: once(chain(a, b)),
    "intersect": lambda a, b: _those(a, list(b), True),
    "difference": lambda a, b: _those(a, list(b), False),
    "symmetric_difference": lambda a, b: _those(a, list(b), False) + _those(b, list(a), False),
}  # fmt: skip
