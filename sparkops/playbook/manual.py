"""The manual of a module, read from its source: docstrings, fields with their types, defaults and comments."""

from __future__ import annotations

import ast
import importlib.util
import re
import textwrap
import types
import typing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Union

from sparkops.node import api
from sparkops.node import modules as on_node
from sparkops.playbook import actions as on_controller
from sparkops.playbook.action import Condition
from sparkops.playbook.modules import REQUIRED, module, runs_on_node
from sparkops.playbook.result_keys import result_keys
from sparkops.project.comments import field_comments

_WORDS = {
    Condition: "expression", api.Path: "path", api.Mode: "mode", api.Patch: "patch",
    api.Source: "file of the controller", api.Template: "template of the controller",
    str: "str", int: "int", float: "float", bool: "bool", Any: "any", list: "list", dict: "dict",
}  # fmt: skip

# What a name means wherever a module does not say more.
_USUAL = {
    "mode": 'permission bits: "0644" or "u=rw,go=r"; left as they are without it',
    "owner": "the user that it belongs to",
    "group": "the group that it belongs to",
    "dest": "where, on the node",
    "path": "where, on the node",
    "state": "how it shall be",
    "home": "sparkops' folder on the node",
    "models_dir": "where checkpoints are, on the node",
    "service": "the served copy's name",
    "unit": "the systemd unit",
    "scope": "whose systemd: the system's, or the user's",
}


@dataclass(frozen=True)
class Argument:
    """An argument: `type` in words, `default` as the module has it (None when `required`, or when there is none)."""

    name: str
    type: str
    required: bool
    default: Any
    choices: list[Any]
    aliases: list[str]
    explanation: str


@dataclass(frozen=True)
class Manual:
    """synopsis: one line. description, notes: paragraphs. example: YAML. result: what is said of it, and its keys.

    free_form: the argument that `module: some text` sets, or "". open_ended: whether it takes any other name too.
    on_node: whether it works on the node; else the controller does it.
    """

    name: str
    synopsis: str
    description: list[str]
    arguments: list[Argument]
    notes: list[str]
    free_form: str
    open_ended: bool
    on_node: bool
    example: str
    result: str
    result_keys: list[str]


def synopsis(name: str) -> str:
    """The first line of a module's docstring."""
    return (ast.get_docstring(ast.parse(_source(name))) or "").partition("\n")[0]


def manual(name: str) -> Manual:
    """The manual of the module of that name, which must be one of `modules.names()`."""
    source = _source(name)
    tree = ast.parse(source)
    first, *rest = _paragraphs(_before(ast.get_docstring(tree) or "", "Example:"))
    known = module(name)
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    explained, notes = _explained(ast.get_docstring(classes["Args"]) or "", {*known.fields, *known.aliases})
    commented = field_comments(source, "Args")
    arguments = [
        Argument(
            name=field.name,
            type=in_words(field.type),
            required=field.default is REQUIRED,
            default=None if field.default is REQUIRED else field.default,
            choices=_choices(field.type),
            aliases=[alias for alias, target in known.aliases.items() if target == field.name],
            explanation=" ".join(filter(None, (commented.get(field.name), explained.get(field.name))))
            or _USUAL.get(field.name, ""),
        )
        for field in known.fields.values()
    ]
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    said = ast.get_docstring(functions["apply" if runs_on_node(name) else "act"])
    return Manual(
        name=name,
        synopsis=first,
        description=rest,
        arguments=arguments,
        notes=notes,
        free_form=known.free_form,
        open_ended=known.open_ended,
        on_node=runs_on_node(name),
        example=_example(ast.get_docstring(tree) or ""),
        result=" ".join(_paragraphs(said or "")).removeprefix("Result: "),
        result_keys=result_keys(tree),
    )


def _source(name: str) -> str:
    folder = on_node if runs_on_node(name) else on_controller
    found = importlib.util.find_spec(f"{folder.__name__}.{name}")
    assert found is not None and found.origin is not None
    return Path(found.origin).read_text(encoding="utf-8")


def in_words(wanted: Any) -> str:
    """A field's type for people: "list of path", "present or absent"."""
    origin, parts = typing.get_origin(wanted), [part for part in typing.get_args(wanted) if part is not type(None)]
    if origin in (Union, types.UnionType):
        return " or ".join(map(in_words, parts))
    if origin is Literal:
        return "str"
    if origin is list:
        return f"list of {in_words(parts[0])}"
    if origin is dict:
        return f"dict of {in_words(parts[1])}" if parts[1] is not Any else "dict"
    return _WORDS.get(wanted, getattr(wanted, "__name__", str(wanted)))


def _choices(wanted: Any) -> list[Any]:
    if typing.get_origin(wanted) is Literal:
        return list(typing.get_args(wanted))
    parts = typing.get_args(wanted) if typing.get_origin(wanted) in (Union, types.UnionType) else ()
    return [choice for part in parts for choice in _choices(part)]


def _paragraphs(text: str) -> list[str]:
    """Paragraphs, each on one line."""
    return [" ".join(part.split()) for part in re.split(r"\n\s*\n", text.strip())]


def _before(text: str, mark: str) -> str:
    return text.partition(f"\n{mark}\n")[0]


def _example(text: str) -> str:
    """The indented block below "Example:"."""
    below = text.partition("\nExample:\n")[2]
    return textwrap.dedent(re.split(r"\n(?=\S)", below)[0]).rstrip()


def _explained(text: str, names: set[str]) -> tuple[dict[str, str], list[str]]:
    """What prose says of each name ("src: a file. force: ..."), and the paragraphs or sentences that are of none."""
    words = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    mark = re.compile(rf"(?:^|(?<=[.!?)] ))((?:{words})(?:(?: / |, )(?:{words}))*): ")
    explained: dict[str, str] = {}
    notes: list[str] = []
    for paragraph in _paragraphs(text):
        before, *pieces = mark.split(paragraph)
        notes += [before.strip()] if before.strip() else []
        for mentioned, explanation in zip(pieces[::2], pieces[1::2], strict=True):
            for name in re.split(r" / |, ", mentioned):
                explained[name] = " ".join(filter(None, (explained.get(name), explanation.strip())))
    return explained, notes
