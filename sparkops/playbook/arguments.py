"""Rendered arguments to what goes to the node: names checked, values converted by the annotated types."""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Mapping
from typing import Any, Literal, Union

from sparkops.errors import InputError, Position
from sparkops.node import api
from sparkops.playbook.action import Condition
from sparkops.playbook.modules import REQUIRED, Field, Module
from sparkops.project.near import did_you_mean
from sparkops.project.yaml import key_position, original, position

TRUE = frozenset({"yes", "on", "1", "true", "y", "t"})
FALSE = frozenset({"no", "off", "0", "false", "n", "f"})
SYMBOLIC = re.compile(r"^([ugoa]*[-+=][rwxXstugo]*,?)+$")


def check_names(module: Module, args: Mapping[str, Any], where: Position) -> dict[str, Any]:
    """The arguments by their fields' names. Raises InputError for a name that is unknown, doubled or missing."""
    found: dict[str, Any] = {}
    for key, value in args.items():
        name = module.aliases.get(key, key)
        if name not in module.fields and not module.open_ended:
            known = sorted([*module.fields, *module.aliases])
            raise InputError(
                f"{module.name} has no argument {key!r}",
                where=key_position(args, key) or where,
                hint=did_you_mean(str(key), known, f"it takes: {', '.join(known)}"),
            )
        if name in found:
            raise InputError(f"{name!r} is given twice (as {key!r} too)", where=key_position(args, key) or where)
        found[name] = value
    for field in module.fields.values():
        if field.default is REQUIRED and field.name not in found:
            raise InputError(f"{module.name} needs the argument {field.name!r}", where=where)
    return found


def convert(module: Module, field: Field, value: Any, raw: Any, where: Position) -> Any:
    """A rendered value as the field's type. `raw` is the args mapping it came from (for what the file says)."""
    key = next((key for key in raw if module.aliases.get(key, key) == field.name), field.name)
    try:
        return _convert(value, field.type, original(raw, key))
    except _Wrong as wrong:
        raise InputError(
            f"{module.name}: {key} {wrong.what}", where=position(raw, key) or where, hint=wrong.hint
        ) from None


class _Wrong(Exception):
    def __init__(self, what: str, hint: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint


def _convert(value: Any, wanted: Any, written: str | None = None) -> Any:
    origin = typing.get_origin(wanted)
    if origin in (Union, types.UnionType):
        return _either(value, list(typing.get_args(wanted)), written)
    if wanted is Any:
        return value
    if origin is Literal:
        return _choice(value, typing.get_args(wanted), written)
    if origin is list or wanted is list:
        return _list(value, (*typing.get_args(wanted), Any)[0])
    if origin is dict or wanted is dict:
        return _dict(value, (*typing.get_args(wanted), Any, Any)[1])
    if wanted is bool:
        return _bool(value, written)
    if wanted is Condition:
        return value
    if wanted is api.Mode:
        return _mode(value, written)
    if wanted in (int, float):
        return _number(value, wanted)
    if wanted in (api.Source, api.Template, api.Patch):
        return _text(value, "the name of a file" if wanted is not api.Patch else "the name of a patch", written)
    return _text(value, "a path" if wanted is api.Path else "text", written)


def _either(value: Any, parts: list[Any], written: str | None) -> Any:
    if value is None and type(None) in parts:
        return None
    first: _Wrong | None = None
    for part in parts:
        if part is type(None):
            continue
        try:
            return _convert(value, part, written)
        except _Wrong as wrong:
            first = first or wrong
    raise first or _Wrong("may only be null")


def _choice(value: Any, choices: tuple[Any, ...], written: str | None) -> Any:
    # `state: yes` has become a bool on the way; the file's own word is what was meant.
    for candidate in (value, written):
        if candidate in choices and not isinstance(candidate, bool):
            return candidate
    raise _Wrong(
        f"is {value!r}", did_you_mean(str(value), map(str, choices), f"it is one of: {', '.join(map(str, choices))}")
    )


def _list(value: Any, item: Any) -> list[Any]:
    if isinstance(value, str) and item is not Condition:
        value = [part.strip() for part in value.split(",") if part.strip()]
    if isinstance(value, (list, tuple)):
        return [_convert(one, item) for one in value]
    if isinstance(value, Mapping) or value is None:
        raise _Wrong(f"must be a list, not {_kind(value)}")
    return [_convert(value, item)]


def _dict(value: Any, item: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise _Wrong(f"must be a mapping, not {_kind(value)}")
    return {str(key): _convert(one, item) for key, one in value.items()}


def _bool(value: Any, written: str | None) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word in TRUE:
        return True
    if word in FALSE:
        return False
    raise _Wrong(f"must be true or false, not {written or value!r}")


def _mode(value: Any, written: str | None) -> str:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        raise _Wrong(
            f"is the number {value}; a mode is text",
            f'quote it: mode: "{written or value}" (YAML turns 0644 into 420, and 644 is another mode)',
        )
    text = _text(value, "a mode", written)
    if text == "preserve" or re.fullmatch(r"0?[0-7]{3,4}", text) or SYMBOLIC.fullmatch(text):
        return text
    raise _Wrong(f"is {text!r}, which is no file mode", 'for example "0644" or "u=rw,go=r"')


def _number(value: Any, wanted: type) -> Any:
    if isinstance(value, bool) or value is None:
        raise _Wrong(f"must be a number, not {_kind(value)}")
    try:
        number = wanted(value)
    except (TypeError, ValueError, OverflowError):
        raise _Wrong(f"must be a number, not {value!r}") from None
    if wanted is int and isinstance(value, float) and number != value:
        raise _Wrong(f"must be a whole number, not {value!r}")
    return number


def _text(value: Any, what: str, written: str | None) -> str:
    if isinstance(value, (Mapping, list)) or value is None:
        raise _Wrong(f"must be {what}, not {_kind(value)}")
    # yes, 1.10 and 22:22 are not what YAML makes of them: the file's own characters are the text.
    return str(value) if isinstance(value, str) else written or str(value)


def _kind(value: Any) -> str:
    return (
        "null" if value is None else {bool: "a bool", dict: "a mapping"}.get(type(value), f"a {type(value).__name__}")
    )
