"""Variables as templates see them: containers that render an element when it is used, not before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import date, time
from typing import Any, Protocol, SupportsIndex

from sparkops.errors import InputError
from sparkops.playbook.template import OMIT, is_template
from sparkops.project.values import Text


class Scope(Protocol):
    """What renders elements: the variables of one render."""

    def view(self, value: Any, label: str) -> Any:
        """The value of variable `label` as a template sees it."""


def is_lazy(value: Any) -> bool:
    """Whether a variable's value has to be rendered, or may hold values that have."""
    return isinstance(value, (dict, list)) or (isinstance(value, Text) and is_template(value))


class LazyDict(dict[Any, Any]):
    """A dict whose values are rendered when they are read."""

    __slots__ = ("_lazy_label", "_lazy_pending", "_lazy_scope")

    def __init__(self, raw: dict[Any, Any], scope: Scope, label: str) -> None:
        super().__init__(raw)
        self._lazy_scope = scope
        self._lazy_label = label
        self._lazy_pending = {key for key, value in raw.items() if is_lazy(value)}

    def _lazy_settle(self, key: Any) -> None:
        if key in self._lazy_pending:
            value = self._lazy_scope.view(super().__getitem__(key), f"{self._lazy_label}.{key}")
            self._lazy_pending.discard(key)
            super().__setitem__(key, value)

    def _lazy_all(self) -> dict[Any, Any]:
        for key in list(self._lazy_pending):
            self._lazy_settle(key)
        return {key: dict.__getitem__(self, key) for key in self.keys()}

    def __getitem__(self, key: Any) -> Any:
        self._lazy_settle(key)
        return super().__getitem__(key)

    def get(self, key: Any, default: Any = None) -> Any:
        self._lazy_settle(key)
        return super().get(key, default)

    def __iter__(self) -> Iterator[Any]:
        # Defined so that dict(lazy) and {**lazy} ask __getitem__ instead of copying what is not rendered yet.
        return super().__iter__()

    def items(self) -> Any:
        return self._lazy_all().items()

    def values(self) -> Any:
        return self._lazy_all().values()

    def copy(self) -> dict[Any, Any]:
        return self._lazy_all()

    def pop(self, key: Any, *default: Any) -> Any:
        self._lazy_settle(key)
        return super().pop(key, *default)

    def __eq__(self, other: object) -> bool:
        return self._lazy_all() == (other._lazy_all() if isinstance(other, LazyDict) else other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __or__(self, other: Any) -> dict[Any, Any]:
        return self._lazy_all() | dict(other)

    def __ror__(self, other: Any) -> dict[Any, Any]:
        return dict(other) | self._lazy_all()

    def __repr__(self) -> str:
        return repr(finalize(self))

    __str__ = __repr__
    __hash__ = None


class LazyList(list[Any]):
    """A list whose items are rendered when they are read."""

    __slots__ = ("_lazy_label", "_lazy_pending", "_lazy_scope")

    def __init__(self, raw: list[Any], scope: Scope, label: str) -> None:
        super().__init__(raw)
        self._lazy_scope = scope
        self._lazy_label = label
        self._lazy_pending = any(map(is_lazy, raw))

    def _lazy_all(self) -> list[Any]:
        if self._lazy_pending:
            self._lazy_pending = False
            for index, value in enumerate(super().__iter__()):
                if is_lazy(value):
                    super().__setitem__(index, self._lazy_scope.view(value, f"{self._lazy_label}[{index}]"))
        return list(super().__iter__())

    def __getitem__(self, index: SupportsIndex | slice) -> Any:
        return self._lazy_all()[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._lazy_all())

    def __reversed__(self) -> Iterator[Any]:
        return iter(self._lazy_all()[::-1])

    def __contains__(self, item: object) -> bool:
        return item in self._lazy_all()

    def __add__(self, other: Any) -> list[Any]:
        return self._lazy_all() + list(other)

    def __radd__(self, other: Any) -> list[Any]:
        return list(other) + self._lazy_all()

    def __mul__(self, times: SupportsIndex) -> list[Any]:
        return self._lazy_all() * times

    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        return self._lazy_all() == (other._lazy_all() if isinstance(other, LazyList) else other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def index(self, value: Any, *bounds: Any) -> int:
        return self._lazy_all().index(value, *bounds)

    def count(self, value: Any) -> int:
        return self._lazy_all().count(value)

    def copy(self) -> list[Any]:
        return self._lazy_all()

    def pop(self, index: SupportsIndex = -1) -> Any:
        self._lazy_all()
        return super().pop(index)

    def __repr__(self) -> str:
        return repr(finalize(self))

    __str__ = __repr__
    __hash__ = None


class View(Mapping[Any, Any]):
    """A mapping over the keys of another; `fetch` gives the value of a key when it is asked for, and once."""

    __slots__ = ("_lazy_done", "_lazy_fetch", "_lazy_keys")

    def __init__(self, keys: Mapping[Any, Any], fetch: Callable[[Any], Any]) -> None:
        self._lazy_keys = keys
        self._lazy_fetch = fetch
        self._lazy_done: dict[Any, Any] = {}

    def __getitem__(self, key: Any) -> Any:
        if key not in self._lazy_done:
            self._lazy_done[key] = self._lazy_fetch(key)
        return self._lazy_done[key]

    def __contains__(self, key: object) -> bool:
        return key in self._lazy_keys

    def __iter__(self) -> Iterator[Any]:
        return iter(self._lazy_keys)

    def __len__(self) -> int:
        return len(self._lazy_keys)

    def __repr__(self) -> str:
        return repr(finalize(self))


# What a template may give beside containers. A date or a time is a value; a difference of two is not (take .days).
_SCALARS = (str, int, float, bytes, type(None), date, time)
# They have __iter__, and giving their items would hide a mistake.
_NO_VALUES = (range, type)


def finalize(value: Any) -> Any:
    """A template's result as plain data: lazy containers rendered, `omit` left out, other iterables as lists.

    An undefined value in it raises its own error; what is no data (a function, a range) raises InputError.
    """
    if isinstance(value, _SCALARS):
        return str(value) if hasattr(value, "__html__") else value
    if value is OMIT:
        return value
    if isinstance(value, Mapping):
        pairs = ((finalize(key), finalize(item)) for key, item in value.items())
        return {key: item for key, item in pairs if item is not OMIT}
    if hasattr(type(value), "_fail_with_undefined_error"):
        value._fail_with_undefined_error()
    if hasattr(type(value), "__iter__") and not isinstance(value, _NO_VALUES):
        return [item for item in map(finalize, value) if item is not OMIT]
    hint = "add '| list'" if isinstance(value, range) else None
    raise InputError(f"the template gives a {type(value).__name__}, which is no value", hint=hint)
