"""What modules there are and what arguments they take, read from node/modules/: one file a module."""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
import types
import typing
from dataclasses import dataclass
from typing import Any, Literal

from sparkops.node import api
from sparkops.node import modules as folder

PREFIXES = ("ansible.builtin.", "ansible.legacy.")
_TYPES: dict[str, Any] = {
    "Any": Any,
    "Literal": Literal,
    "Path": api.Path,
    "Mode": api.Mode,
    "Source": api.Source,
    "Template": api.Template,
    "Patch": api.Patch,
}
REQUIRED = object()


@dataclass(frozen=True)
class Field:
    """An argument: its type, and the default as the node gets it (REQUIRED: none)."""

    name: str
    type: Any
    default: Any

    @property
    def kind(self) -> str | None:
        """What the node makes of the value (executor._value): path, source, template, patch."""
        for part in (self.type, *typing.get_args(self.type)):
            if isinstance(part, type) and issubclass(part, (api.Path, api.Source, api.Template, api.Patch)):
                return part.__name__.lower()
        return None


@dataclass(frozen=True)
class Module:
    """A module's name, its fields by name, other words for them, and the field that free text sets."""

    name: str
    fields: dict[str, Field]
    aliases: dict[str, str]
    free_form: str


@functools.cache
def names() -> tuple[str, ...]:
    """All modules."""
    return tuple(sorted(found.name.rstrip("_") for found in pkgutil.iter_modules(folder.__path__)))


@functools.cache
def module(name: str) -> Module:
    """The module of that name, which must be one of `names()`."""
    arguments: type[api.Arguments] = importlib.import_module(f"{folder.__name__}.{name}").Args
    hints = {}
    for one in reversed(arguments.__mro__):
        if issubclass(one, api.Arguments) and one is not api.Arguments:
            hints.update(inspect.get_annotations(one))
    # The annotations are strings: on the node nobody evaluates them.
    fields = {
        key: Field(key, eval_annotation(text), getattr(arguments, key, REQUIRED))
        for key, text in hints.items()
        if not text.startswith("ClassVar")
    }
    return Module(name, fields, dict(arguments.aliases), arguments.free_form)


def eval_annotation(text: str) -> Any:
    """The type that a module's annotation means; only the names above and Python's own mean something."""
    made = types.new_class("Holder")
    made.__annotations__ = {"value": text}
    return typing.get_type_hints(made, globalns=dict(_TYPES))["value"]
