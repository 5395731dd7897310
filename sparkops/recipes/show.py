"""A recipe as YAML: whole, in the order of the schema's fields, and with the place that each value comes from."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import yaml

from sparkops.errors import Position
from sparkops.project.values import position
from sparkops.recipes.load import SHIPPED, Loaded

DEFAULT = "default"


def recipe_yaml(loaded: Loaded) -> str:
    """The whole recipe, defaults too. One that extends another has a comment with its place behind each value."""
    places = origins(loaded) if loaded.extends else {}
    return "\n".join(yaml_lines(msgspec.to_builtins(loaded.recipe, builtin_types=(datetime.date,)), places)) + "\n"


def origins(loaded: Loaded) -> dict[str, str]:
    """`expect.log` -> `FILE:LINE:COLUMN` of the file that gives the value, or `default`."""
    return dict(_origins(msgspec.to_builtins(loaded.recipe), loaded.document, ""))


def yaml_lines(values: Mapping[str, Any], places: Mapping[str, str], path: str = "", indent: str = "") -> Iterator[str]:
    """Block YAML of a mapping; items of lists that are mappings stand on one line each."""
    for key, value in values.items():
        here = f"{path}{key}"
        comment = f"  # {places[here]}" if here in places else ""
        if isinstance(value, dict) and value:
            yield f"{indent}{key}:"
            yield from yaml_lines(value, places, f"{here}.", f"{indent}  ")
        elif isinstance(value, list) and value:
            yield f"{indent}{key}:{comment}"
            yield from (f"{indent}  - {_flow(item)}" for item in value)
        else:
            yield f"{indent}{key}: {_flow(value)}{comment}"


def shown(place: Position) -> str:
    """A position with its file as a user names it: shipped, relative to this folder, or absolute."""
    file = Path(place.file)
    if file.is_relative_to(SHIPPED):
        return f"shipped {file.name}:{place.line}:{place.column}"
    here = Path.cwd()
    name = file.relative_to(here) if file.is_relative_to(here) else file
    return f"{name}:{place.line}:{place.column}"


def _origins(values: Mapping[str, Any], document: Any, path: str) -> Iterator[tuple[str, str]]:
    for key, value in values.items():
        given = isinstance(document, dict) and key in document
        if isinstance(value, dict) and value:
            yield from _origins(value, document[key] if given else None, f"{path}{key}.")
        else:
            place = position(document, key) if given else None
            yield f"{path}{key}", shown(place) if place else DEFAULT


def _flow(value: Any) -> str:
    """One value on one line."""
    if isinstance(value, str) and ("\n" in value or not value.isprintable()):
        return json.dumps(value)
    text = yaml.safe_dump(value, default_flow_style=True, width=float("inf"), allow_unicode=True, sort_keys=False)
    return text.removesuffix("\n").removesuffix("\n...")
