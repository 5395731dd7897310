"""YAML and JSON files as Ansible reads them: what is JSON is read as JSON, all else as YAML 1.1."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sparkops.errors import InputError
from sparkops.project import yaml
from sparkops.project.values import Mapping, Sequence, Unsafe, plain


def load(path: Path) -> Any:
    """The one document of a file, with positions; None when it is empty. Raises InputError."""
    return loads(yaml.read(path), str(path))


def loads(text: str, name: str) -> Any:
    """The one document in `text`. YAML 1.1 is almost JSON: it takes 1e5 for a text, and no tab for a blank."""
    if not text.lstrip(" \t\r\n").startswith(("{", "[")):
        return yaml.loads(text, name)
    try:
        value = from_json(json.loads(text), name)
    except (ValueError, RecursionError):
        return yaml.loads(text, name)
    try:
        # A tab in JSON stands between values only.
        return _placed(yaml.loads(text.replace("\t", " "), name), value)
    except InputError:
        return value


def from_json(value: Any, where: str) -> Any:
    """A value from JSON: {"__ansible_unsafe": TEXT} is a text that is never a template. Raises InputError."""
    if isinstance(value, list):
        return [from_json(item, where) for item in value]
    if not isinstance(value, dict):
        return value
    if isinstance(value.get("__ansible_unsafe"), str):
        return Unsafe(value["__ansible_unsafe"])
    if "__ansible_vault" in value:
        raise InputError(
            "a value is encrypted with ansible-vault, which sparkops does not read",
            where=where,
            hint="keep the secret in the environment: {{ lookup('env', 'NAME') }}",
        )
    return {key: from_json(item, where) for key, item in value.items()}


def unsafe(value: Any) -> Any:
    """The value, its texts never templates."""
    if isinstance(value, list):
        return [unsafe(item) for item in value]
    if isinstance(value, dict):
        return {key: unsafe(item) for key, item in value.items()}
    return Unsafe(value) if isinstance(value, str) else value


def _placed(placed: Any, value: Any) -> Any:
    """JSON's value in YAML's containers, which know their positions."""
    if isinstance(placed, Mapping) and isinstance(value, dict) and placed.keys() == value.keys():
        for key in value:
            placed[key] = _placed(placed[key], value[key])
        return placed
    if isinstance(placed, Sequence) and isinstance(value, list) and len(placed) == len(value):
        placed[:] = map(_placed, placed, value)
        return placed
    return placed if type(plain(placed)) is type(value) and placed == value else value
