"""JSON Schemas of recipes, engines, patches and settings, each field described by its comment in the source."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import msgspec

from sparkops.project.comments import field_comments
from sparkops.project.settings import Settings
from sparkops.recipes.schema import Engine, PatchFile, Recipe

KINDS: dict[str, type[Any]] = {
    "recipe": Recipe, "engine": Engine, "patch": PatchFile, "settings": Settings,
}  # fmt: skip
# Of the definitions of what stands in a recipe that extends another.
SUFFIX = "Overrides"


def struct_schema(kind: str) -> dict[str, Any]:
    """The schema of one of KINDS."""
    schema: dict[str, Any] = msgspec.json.schema(KINDS[kind])
    source = inspect.getsource(importlib.import_module(KINDS[kind].__module__))
    for name, definition in schema["$defs"].items():
        if kind == "settings":
            # No Struct, for which it would stand there: a run reads settings without msgspec.
            definition["additionalProperties"] = False
        for field, comment in field_comments(source, name).items():
            definition["properties"][field] = {"description": comment, **definition["properties"][field]}
    return with_extends(schema) if kind == "recipe" else schema


def with_extends(schema: dict[str, Any]) -> dict[str, Any]:
    """A recipe's schema, or that of one that `extends` another: no field is needed, and null takes each away."""
    whole = schema["$defs"]
    parts = {f"{name}{SUFFIX}": _over(definition) for name, definition in whole.items()}
    root = parts[f"Recipe{SUFFIX}"]
    root["properties"]["extends"] = {"type": "string", "description": "the recipe whose values hold where none is here"}
    root["required"] = ["extends"]
    choices = [{"$ref": "#/$defs/Recipe"}, {"$ref": f"#/$defs/Recipe{SUFFIX}"}]
    # `if`: an editor then reports what is wrong with the kind that is meant, not with both.
    return {"if": {"required": ["extends"]}, "then": choices[1], "else": choices[0], "$defs": {**whole, **parts}}


def _over(definition: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in definition.items() if key not in ("required", "properties")}
    properties = {name: _or_null(_parts(value)) for name, value in definition["properties"].items()}
    return {**kept, "properties": properties}


def _parts(value: Any) -> Any:
    """References to parts instead of wholes; the items of lists stay whole, as lists are taken whole."""
    if isinstance(value, list):
        return [_parts(item) for item in value]
    return {key: _part(key, item) for key, item in value.items()} if isinstance(value, dict) else value


def _part(key: str, value: Any) -> Any:
    if key == "$ref":
        return f"{value}{SUFFIX}"
    if key == "additionalProperties":
        return _or_null(value)
    return value if key == "items" else _parts(value)


def _or_null(schema: Any) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}
