"""`is version(...)`: what Ansible's version types compare."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sparkops.errors import InputError

if TYPE_CHECKING:
    from packaging.version import Version

_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "=": operator.eq, "eq": operator.eq, "!=": operator.ne, "<>": operator.ne, "ne": operator.ne,
    "<": operator.lt, "lt": operator.lt, "<=": operator.le, "le": operator.le,
    ">": operator.gt, "gt": operator.gt, ">=": operator.ge, "ge": operator.ge,
}  # fmt: skip
# https://semver.org: numbers without leading zeros, then -pre.release and +build.
_SEMVER = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(?:-((?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?"
    r"(?:\+[0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*)?"
)
_STRICT = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?(?:([ab])(\d+))?")


def version(
    value: Any, other: Any, operator: str = "eq", strict: bool | None = None, version_type: str | None = None
) -> bool:
    """Compares versions number by number; version_type pep440 or semver where suffixes have an order.

    Raises InputError.
    """
    if strict is not None and version_type is not None:
        raise InputError("'is version' takes strict or version_type, not both")
    if operator not in _OPERATORS:
        raise InputError(f"'is version' has no operator {operator!r}", hint=f"one of {', '.join(_OPERATORS)}")
    if not value or not other:
        raise InputError("'is version' compares two versions, and one of these is empty")
    kind = "strict" if strict else version_type or "loose"
    if kind not in _KINDS:
        raise InputError(f"'is version' has no version_type {kind!r}", hint=f"one of {', '.join(_KINDS)}")
    read = _KINDS[kind]
    try:
        left, right = read(str(value)), read(str(other))
        # All operators need an order, == too.
        return bool(_OPERATORS[operator](0 if left == right else -1 if left < right else 1, 0))
    except TypeError:
        raise InputError(f"the versions {value!r} and {other!r} have no order: a number meets a letter") from None


def _loose(text: str) -> list[int | str]:
    pieces = re.split(r"(\d+|[a-z]+|\.)", text)
    return [int(piece) if piece.isdigit() else piece for piece in pieces if piece and piece != "."]


def _strict(text: str) -> tuple[Any, ...]:
    found = _STRICT.fullmatch(text)
    if not found:
        raise InputError(f"{text!r} is no strict version", hint="1.2, 1.2.3 or 1.2a4; version_type pep440 takes more")
    # A version is above its own alphas and betas.
    return *(int(found[n] or 0) for n in (1, 2, 3)), (found[4] or "c", int(found[5] or 0))


def _semantic(text: str) -> tuple[Any, ...]:
    found = _SEMVER.fullmatch(text)
    if not found:
        raise InputError(f"{text!r} is no semantic version", hint="three numbers, as 1.2.3 or 1.2.3-rc.1")
    before = [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in (found[4] or "").split(".") if part]
    return *(int(found[n]) for n in (1, 2, 3)), not before, before


def _pep440(text: str) -> Version:
    from packaging.version import InvalidVersion, Version

    try:
        return Version(text)
    except InvalidVersion as error:
        raise InputError(str(error)) from None


_KINDS: dict[str, Callable[[str], Any]] = {
    "loose": _loose, "strict": _strict, "semver": _semantic, "semantic": _semantic, "pep440": _pep440,
}  # fmt: skip
