"""JSON Schemas of recipes, engines, patches and settings, each field described by its comment in the source."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import msgspec

from sparkops.project.comments import field_comments
from sparkops.project.settings import Settings
from sparkops.recipes.schema import Engine, PatchFile, Recipe

KINDS: dict[str, type[msgspec.Struct]] = {
    "recipe": Recipe, "engine": Engine, "patch": PatchFile, "settings": Settings,
}  # fmt: skip


def struct_schema(kind: str) -> dict[str, Any]:
    """The schema of one of KINDS."""
    schema: dict[str, Any] = msgspec.json.schema(KINDS[kind])
    source = inspect.getsource(importlib.import_module(KINDS[kind].__module__))
    for name, definition in schema["$defs"].items():
        for field, comment in field_comments(source, name).items():
            definition["properties"][field] = {"description": comment, **definition["properties"][field]}
    return schema
