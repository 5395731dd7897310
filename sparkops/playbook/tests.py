"""Ansible's Jinja tests: `is changed`, `is version(...)`, `is match(...)`."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

from packaging.version import InvalidVersion, Version

from sparkops.errors import InputError


def _flag(name: str) -> Callable[[Any], bool]:
    def test(result: Any) -> bool:
        if not isinstance(result, Mapping):
            raise InputError(f"'is {name}' asks a task's result, not {result!r}")
        return bool(result.get(name))

    return test


def _not(test: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda result: not test(result)


def _changed(result: Any) -> bool:
    """A loop's result changed when one of its items did."""
    items = result.get("results") if isinstance(result, Mapping) and "changed" not in result else None
    if isinstance(items, list):
        return any(isinstance(item, Mapping) and bool(item.get("changed")) for item in items)
    return _flag("changed")(result)


def _regex(method: str) -> Callable[..., bool]:
    def test(value: Any, pattern: str = "", ignorecase: bool = False, multiline: bool = False) -> bool:
        flags = (re.IGNORECASE if ignorecase else 0) | (re.MULTILINE if multiline else 0)
        return getattr(re.compile(pattern, flags), method)(str(value)) is not None

    return test


def _regex_any(
    value: Any, pattern: str = "", ignorecase: bool = False, multiline: bool = False, match_type: str = "search"
) -> bool:
    return _regex(match_type)(value, pattern, ignorecase, multiline)


_OPERATORS = {
    "==": operator.eq, "=": operator.eq, "eq": operator.eq, "!=": operator.ne, "<>": operator.ne, "ne": operator.ne,
    "<": operator.lt, "lt": operator.lt, "<=": operator.le, "le": operator.le,
    ">": operator.gt, "gt": operator.gt, ">=": operator.ge, "ge": operator.ge,
}  # fmt: skip


def version(
    value: Any, other: Any, op: str = "eq", strict: bool | None = None, version_type: str | None = None
) -> bool:
    """Compares versions number by number; version_type pep440 (or semver) where suffixes have an order."""
    if op not in _OPERATORS:
        raise InputError(f"'is version' has no operator {op!r}", hint=f"one of {', '.join(_OPERATORS)}")
    for text in (value, other):
        if text is None or not str(text):
            raise InputError("'is version' compares two versions, and one of these is empty")
    compare = _OPERATORS[op]
    if version_type in ("pep440", "semver", "semantic", "strict") or strict:
        try:
            return bool(compare(Version(str(value)), Version(str(other))))
        except InvalidVersion as error:
            raise InputError(str(error)) from None
    if version_type not in (None, "loose"):
        raise InputError(f"'is version' has no version_type {version_type!r}", hint="loose, strict, semver or pep440")
    try:
        return bool(compare(_loose(str(value)), _loose(str(other))))
    except TypeError:
        raise InputError(f"the versions {value!r} and {other!r} have no order: a number meets a letter") from None


def _loose(text: str) -> list[int | str]:
    pieces = re.split(r"(\d+|[a-z]+|\.)", text)
    return [int(piece) if piece.isdigit() else piece for piece in pieces if piece and piece != "."]


def _boolean(value: Any, convert_bool: bool = False) -> bool:
    if convert_bool and isinstance(value, str):
        lowered = value.lower()
        if lowered in ("no", "off", "false", "0", "n", "f"):
            return False
    return bool(value)


def _defined(value: Any) -> bool:
    from sparkops.playbook.jinja import Broken, Missing

    if isinstance(value, Broken):
        value._fail_with_undefined_error()
    return not isinstance(value, Missing)


TESTS: dict[str, Callable[..., Any]] = {
    "failed": _flag("failed"), "failure": _flag("failed"),
    "succeeded": _not(_flag("failed")), "success": _not(_flag("failed")), "successful": _not(_flag("failed")),
    "unreachable": _flag("unreachable"), "reachable": _not(_flag("unreachable")),
    "changed": _changed, "change": _changed, "skipped": _flag("skipped"), "skip": _flag("skipped"),
    "match": _regex("match"), "search": _regex("search"), "regex": _regex_any,
    "version": version, "version_compare": version,
    "any": any, "all": all,
    "truthy": _boolean, "falsy": lambda value, convert_bool=False: not _boolean(value, convert_bool),
    "subset": lambda a, b: set(a) <= set(b), "issubset": lambda a, b: set(a) <= set(b),
    "superset": lambda a, b: set(a) >= set(b), "issuperset": lambda a, b: set(a) >= set(b),
    "contains": lambda container, item: item in container,
    "defined": _defined, "undefined": lambda value: not _defined(value),
}  # fmt: skip
