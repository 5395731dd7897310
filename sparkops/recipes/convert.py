"""From a YAML document to a struct: msgspec checks, and its errors get the position in the file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from sparkops.errors import InputError, Position
from sparkops.project import yaml
from sparkops.project.near import did_you_mean
from sparkops.recipes.fields import fields, struct_at

T = TypeVar("T", bound=msgspec.Struct)


def convert(document: Any, schema: type[T], path: Path) -> T:
    """The document of the file `path` as a struct. Raises InputError: the first thing that is wrong, and where."""
    try:
        return msgspec.convert(plain(document), schema)
    except msgspec.ValidationError as error:
        raise refused(error, document, schema, path) from None


def plain(value: Any) -> Any:
    """A document as Python's own types, which is what msgspec takes."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return str(value) if isinstance(value, str) else value


def refused(error: msgspec.ValidationError, document: Any, schema: type[msgspec.Struct], path: Path) -> InputError:
    """msgspec's error at the position in the file that its path (`$.expect.log[0]`) means."""
    message, _, at = str(error).partition(" - at `")
    container, key, place = None, None, yaml.position(document)
    steps = [name or int(index) for name, index in re.findall(r"\.([A-Za-z_]\w*)|\[(\d+)\]", at)]
    for key in steps:
        container = document
        place = yaml.position(container, key) or place
        document = document[key]
    hint = None
    unknown = re.search(r"unknown field `(.*)`", message)
    if unknown:
        place = yaml.key_position(document, unknown[1]) or place
        struct = struct_at(schema, steps)
        known = list(fields(struct)) if struct else []
        hint = did_you_mean(unknown[1], known, f"there are: {', '.join(known)}")
    if re.match(r"Expected `str\b", message) and container is not None:
        written = yaml.original(container, key)
        hint = f'quote it: "{written}"' if written else None
    where: Position | str = place or str(path)
    return InputError(_lower(message) + (f" in {at.rstrip('`')[2:]}" if at else ""), where=where, hint=hint)


def _lower(message: str) -> str:
    return message[:1].lower() + message[1:]
