"""The fields of a schema's structs, found by the path of a value in a document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

import msgspec
from msgspec.structs import FieldInfo


def struct_of(annotation: Any) -> type[msgspec.Struct] | None:
    """The struct that a type is, or holds: `Golden | None`, `list[Figure]`, `Annotated[...]`."""
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return annotation
    return next(filter(None, map(struct_of, get_args(annotation))), None)


def fields(schema: type[msgspec.Struct]) -> dict[str, FieldInfo]:
    """name -> field, in the order of the source."""
    return {field.name: field for field in msgspec.structs.fields(schema)}


def struct_at(schema: type[msgspec.Struct], path: Sequence[str | int]) -> type[msgspec.Struct] | None:
    """The struct that the value at `path` should be; None where it should be none."""
    current: type[msgspec.Struct] | None = schema
    for step in path:
        if current is not None and isinstance(step, str):
            field = fields(current).get(step)
            current = struct_of(field.type) if field else None
    return current
