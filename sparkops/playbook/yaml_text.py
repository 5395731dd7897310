"""Filters between values and YAML or JSON text."""

from __future__ import annotations

import json
from datetime import date, time
from typing import Any

import yaml

from sparkops.errors import InputError
from sparkops.playbook.lazy import finalize
from sparkops.project.values import plain
from sparkops.project.yaml import loads

# libyaml's, where it is: it ends a lone text without "...".
_Base: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _Dumper(_Base):  # type: ignore[misc]
    """Writes the values that know their positions as what they are, and repeats a value rather than alias it."""

    def ignore_aliases(self, _: Any) -> bool:
        return True


_Dumper.add_multi_representer(str, lambda dumper, text: dumper.represent_str(str(text)))
_Dumper.add_multi_representer(int, lambda dumper, number: dumper.represent_int(int(number)))


def to_json(value: Any, **options: Any) -> str:
    return json.dumps(finalize(value), default=_moment, **options)


def _moment(value: Any) -> str:
    if isinstance(value, (date, time)):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def to_nice_json(value: Any, indent: int = 4, sort_keys: bool = True, **options: Any) -> str:
    return to_json(value, indent=indent, sort_keys=sort_keys, separators=(",", ": "), **options)


def to_yaml(value: Any, default_flow_style: bool | None = None, **options: Any) -> str:
    options = {"allow_unicode": True, "default_flow_style": default_flow_style, **options}
    try:
        return str(yaml.dump(finalize(value), Dumper=_Dumper, **options))
    except yaml.YAMLError as error:
        raise InputError(f"this has no form in YAML: {error}") from None


def to_nice_yaml(value: Any, indent: int = 4, **options: Any) -> str:
    return to_yaml(value, **{"indent": indent, "default_flow_style": False, **options})


def from_yaml(text: Any) -> Any:
    """The value of YAML text: data, whatever it holds, and never a template."""
    return plain(loads(str(text), "from_yaml")) if isinstance(text, str) else text


def from_yaml_all(text: Any) -> list[Any]:
    if text is None:
        return []
    try:
        return list(yaml.safe_load_all(str(text))) if isinstance(text, str) else text
    except yaml.YAMLError as error:
        raise InputError(f"'from_yaml_all': {error}") from None
