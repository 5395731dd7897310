"""A recipe that `extends` another: what it says wins, the rest is the other's. Every value keeps its position.

Mappings are merged, lists are taken whole, and `null` takes a value away, so that the field's default holds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from sparkops.errors import InputError
from sparkops.project import yaml
from sparkops.recipes.fields import fields, struct_of
from sparkops.recipes.schema import Recipe

WORD = "extends"


def resolve(name: str, document: Any, load: Callable[[str], Any]) -> tuple[Any, list[str]]:
    """The whole document of recipe `name`, and the recipes that it extends, the nearest first.

    `load` gives another recipe's document as it is written. Raises InputError: an unknown base, or a circle.
    """
    chain: list[str] = []
    links = [document]
    while isinstance(links[-1], dict) and WORD in links[-1]:
        base = _base(links[-1])
        if base in (name, *chain):
            raise _circle([name, *chain, base], links[-1])
        chain.append(base)
        links.append(load(base))
    whole = links.pop()
    for link in reversed(links):
        whole = merged(whole, link, Recipe)
    if chain:
        whole = _set(_without(whole, {WORD}), "name", document.get("name", name), document)
    return whole, chain


def merged(base: Any, over: Any, schema: type[msgspec.Struct] | None) -> Any:
    """`base` with what `over` says; a null stays one where the schema wants the field, and may be null."""
    known = fields(schema) if schema else {}
    result = _without(base if isinstance(base, dict) else {}, ())
    for key, value in over.items():
        field = known.get(key)
        if value is None and not (field and field.required):
            result = _without(result, {key})
        elif isinstance(value, dict):
            inner = struct_of(field.type) if field else None
            result = _set(result, key, merged(result.get(key), value, inner), over)
        else:
            result = _set(result, key, value, over)
    result.position = yaml.position(over)
    return result


def _base(document: Any) -> str:
    base = document[WORD]
    if not isinstance(base, str) or not base:
        where = yaml.position(document, WORD)
        raise InputError(f"{WORD} takes the name of one recipe, not {base!r}", where=where, hint=f"{WORD}: fp8")
    return base


def _circle(names: list[str], document: Any) -> InputError:
    if len(names) == 2:
        message, hint = f"{names[0]} extends itself", "give your recipe a name of its own; its file has the same"
    else:
        message, hint = f"recipes extend each other in a circle: {' -> '.join(names)}", None
    return InputError(message, where=yaml.position(document, WORD), hint=hint)


def _without(mapping: Any, keys: Any) -> yaml.Mapping:
    """A copy with its positions, less some keys."""
    copy = yaml.Mapping(position=yaml.position(mapping))
    for key, value in mapping.items():
        if key not in keys:
            _set(copy, key, value, mapping)
    return copy


def _set(mapping: yaml.Mapping, key: Any, value: Any, source: Any) -> yaml.Mapping:
    """Set a key, with the positions that it has in `source`."""
    mapping[key] = value
    mapping.texts.pop(key, None)
    if isinstance(source, yaml.Mapping):
        place, key_place = source.values_at.get(key, source.position), source.keys_at.get(key, source.position)
        if place is not None and key_place is not None:
            mapping.values_at[key], mapping.keys_at[key] = place, key_place
        if key in source.texts:
            mapping.texts[key] = source.texts[key]
    return mapping
