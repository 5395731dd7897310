"""Undefined values: what they are, and how they pass through filters, tests and calls as in ansible-core 2.19."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import jinja2
from jinja2.runtime import StrictUndefined
from jinja2.utils import missing


class Unknown(jinja2.UndefinedError):
    """An undefined value was used: `name`, looked up in `obj` (missing: among the variables)."""

    def __init__(self, message: str | None, name: Any, obj: Any, value: Missing) -> None:
        super().__init__(message)
        self.name = name
        self.obj = obj
        self.value = value


class Missing(StrictUndefined):
    """An undefined value. Its attributes are undefined too, so that `a.b.c is defined` may be asked of nothing."""

    __slots__ = ()

    def __init__(self, hint: Any = None, obj: Any = missing, name: Any = None, exc: Any = None) -> None:
        # Jinja calls `exc` with the message and raises what comes back, so it need not be a class.
        raised: Any = exc or (lambda message: Unknown(message, name, obj, self))
        super().__init__(hint, obj, name, raised)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __getitem__(self, key: Any) -> Any:
        return self

    def __repr__(self) -> str:
        # So that no list's text has "Undefined" in it.
        self._fail_with_undefined_error()


class Broken(Missing):
    """A variable whose template failed for another reason than an undefined name: no default replaces it."""

    __slots__ = ()


def first_missing(values: Iterable[Any]) -> Missing | None:
    """The first undefined value among the arguments of a call, if any."""
    return next((value for value in values if isinstance(value, Missing)), None)


def passing(function: Callable[..., Any]) -> Callable[..., Any]:
    """A filter or test that is undefined when one of its arguments is, so that a `default` behind it still counts."""

    @wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        found = first_missing((*args, *kwargs.values()))
        if found is not None:
            return found
        try:
            return function(*args, **kwargs)
        except Unknown as error:
            return error.value

    return guarded
