"""What modules there are and what arguments they take: one file each, in node/modules/ or playbook/actions/."""

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
from sparkops.node import modules as on_node
from sparkops.playbook import actions as on_controller
from sparkops.playbook.action import Condition

PREFIXES = ("ansible.builtin.", "ansible.legacy.")
_TYPES: dict[str, Any] = {
    "Any": Any,
    "Condition": Condition,
    "Literal": Literal,
    "Mode": api.Mode,
    "Patch": api.Patch,
    "Path": api.Path,
    "Source": api.Source,
    "Template": api.Template,
}
REQUIRED = object()


@dataclass(frozen=True)
class Field:
    """An argument: its type, and the default as the module gets it (REQUIRED: none)."""

    name: str
    type: Any
    default: Any

    @functools.cached_property
    def kind(self) -> str | None:
        """What is to be made of the value: path, source, template, patch, condition; None: it is itself."""
        kinds = (api.Path, api.Source, api.Template, api.Patch, Condition)
        for part in (self.type, *typing.get_args(self.type)):
            if isinstance(part, type) and issubclass(part, kinds):
                return part.__name__.lower()
        return None


@dataclass(frozen=True)
class Module:
    """A module's name, its fields by name, other words for them, and the field that free text sets.

    act: for one that the controller carries out, the function that does. open_ended: it takes any name.
    """

    name: str
    fields: dict[str, Field]
    aliases: dict[str, str]
    free_form: str
    arguments: type[api.Arguments]
    act: Any = None
    open_ended: bool = False


@functools.cache
def names() -> tuple[str, ...]:
    """All modules."""
    return tuple(sorted(_places()))


@functools.cache
def _places() -> dict[str, str]:
    folders = (on_node, on_controller)
    return {found.name: folder.__name__ for folder in folders for found in pkgutil.iter_modules(folder.__path__)}


def runs_on_node(name: str) -> bool:
    """Whether a module is sent to the node; the controller does the others itself."""
    return _places()[name] == on_node.__name__


@functools.cache
def module(name: str) -> Module:
    """The module of that name, which must be one of `names()`."""
    found = importlib.import_module(f"{_places()[name]}.{name}")
    arguments: type[api.Arguments] = found.Args
    hints: dict[str, str] = {}
    for one in reversed(arguments.__mro__):
        if issubclass(one, api.Arguments) and one is not api.Arguments:
            hints.update(inspect.get_annotations(one))
    # The annotations are strings: on the node nobody evaluates them.
    fields = {
        key: Field(key, eval_annotation(text), getattr(arguments, key, REQUIRED))
        for key, text in hints.items()
        if not text.startswith("ClassVar")
    }
    return Module(
        name,
        fields,
        dict(arguments.aliases),
        arguments.free_form,
        arguments,
        getattr(found, "act", None),
        arguments.open_ended,
    )


def eval_annotation(text: str) -> Any:
    """The type that a module's annotation means; only the names above and Python's own mean something."""
    made = types.new_class("Holder")
    made.__annotations__ = {"value": text}
    return typing.get_type_hints(made, globalns=dict(_TYPES))["value"]
