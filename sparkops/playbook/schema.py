"""The JSON Schema (draft 2020-12) of playbooks, from the parser's own words and the modules' own arguments."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any, Literal, Union

from sparkops.node import api
from sparkops.playbook import modules, words
from sparkops.playbook.action import Condition
from sparkops.playbook.manual import manual
from sparkops.playbook.modules import PREFIXES, REQUIRED
from sparkops.playbook.wordbook import BOOL, CONDITION, TEMPLATE, WORDS, Schema

INCLUDE = "include_tasks"
# `file: path=/x state=directory`
_PAIRS: Schema = {"type": "string", "pattern": r"^\s*[A-Za-z_]\w*="}


def playbook_schema() -> Schema:
    """The schema of a playbook file."""
    importing = _spelt("import_playbook")
    definitions: Schema = {
        **{f"module_{name}": module_schema(name) for name in modules.names()},
        "play": _mapping(_properties(words.PLAY), required=["hosts"]),
        "import_playbook": _import("import_playbook", words.IMPORT_PLAYBOOK),
        "import_tasks": _import("import_tasks", words.IMPORT | {"import_tasks"}),
        "block": _mapping(_properties(words.BLOCK), required=["block"]),
        "include_tasks": _task(words.INCLUDE, [INCLUDE]),
        "task": _task(words.TASK, [name for name in modules.names() if name != INCLUDE]),
        "handler": _task(words.HANDLER, [name for name in modules.names() if name != INCLUDE]),
        "step": _step("task"),
        "handler_step": _step("handler"),
    }
    play = {"if": _has(importing), "then": _ref("import_playbook"), "else": _ref("play")}
    return {"type": "array", "minItems": 1, "items": {"type": "object", **play}, "$defs": definitions}


def _step(plain: str) -> Schema:
    """One entry of a list of tasks. By its one telling word, so that an editor names what is wrong with this kind."""
    include = {"if": _has(_spelt(INCLUDE)), "then": _ref("include_tasks"), "else": _ref(plain)}
    imported = {"if": _has(_spelt("import_tasks")), "then": _ref("import_tasks"), "else": include}
    return {"type": "object", "if": _has(["block"]), "then": _ref("block"), "else": imported}


def _import(word: str, known: Iterable[str]) -> Schema:
    plain = _properties(known)
    return {
        **_mapping({**plain, **dict.fromkeys(_spelt(word), plain[word])}),
        "oneOf": [{"required": [key]} for key in _spelt(word)],
    }


def _task(known: frozenset[str], names: Iterable[str]) -> Schema:
    called = {key: name for name in names for key in _spelt(name)}
    actions = {key: _ref(f"module_{name}") for key, name in called.items()}
    return {**_mapping({**_properties(known), **actions}), "oneOf": [{"required": [key]} for key in called]}


def _spelt(name: str) -> list[str]:
    """The ways to write a module's name."""
    return [f"{prefix}{name}" for prefix in ("", *PREFIXES)]


def _has(keys: Iterable[str]) -> Schema:
    return {"anyOf": [{"required": [key]} for key in keys]}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _properties(known: Iterable[str]) -> Schema:
    return {word: _described(WORDS[word].kind.schema, WORDS[word].meaning) for word in sorted(known)}


def _mapping(properties: Mapping[str, Any], required: Iterable[str] = (), more: bool = False) -> Schema:
    found: Schema = {"type": "object", "properties": properties, "additionalProperties": more}
    return {**found, "required": list(required)} if required else found


def module_schema(name: str) -> Schema:
    """What may stand behind a module's name in a task."""
    module, page = modules.module(name), manual(name)
    explained = {argument.name: argument.explanation for argument in page.arguments}
    properties: Schema = {}
    for field in module.fields.values():
        properties[field.name] = _described(type_schema(field.type), explained[field.name])
    properties.update({alias: properties[target] for alias, target in module.aliases.items()})
    names = [
        [field.name, *(alias for alias, target in module.aliases.items() if target == field.name)]
        for field in module.fields.values()
        if field.default is REQUIRED
    ]
    mapping = _mapping(properties, more=module.open_ended)
    if names:
        mapping["allOf"] = [_has(alternatives) for alternatives in names]
    free = [type_schema(module.fields[module.free_form].type)] if module.free_form else []
    return {"description": page.synopsis, "anyOf": [mapping, {"type": "null"}, _PAIRS, *free]}


def _described(schema: Schema, text: str) -> Schema:
    return {"description": text, **schema} if text else schema


def type_schema(wanted: Any) -> Schema:
    """What an argument of a type may be in YAML: a template, or what `arguments.convert` takes."""
    origin, parts = typing.get_origin(wanted), typing.get_args(wanted)
    if origin in (Union, types.UnionType):
        return {"anyOf": [type_schema(part) for part in parts]}
    if origin is Literal:
        return {"anyOf": [{"enum": list(parts)}, TEMPLATE]}
    if origin is list or wanted is list:
        item = type_schema((*parts, Any)[0])
        return {"anyOf": [{"type": "array", "items": item}, item, {"type": "string"}]}
    if origin is dict or wanted is dict:
        return {"anyOf": [{"type": "object", "additionalProperties": type_schema((*parts, Any, Any)[1])}, TEMPLATE]}
    if wanted is Any:
        return {}
    if wanted is type(None):
        return {"type": "null"}
    if wanted is bool:
        return BOOL
    if wanted is Condition:
        return CONDITION
    if wanted in (int, float):
        kind = "integer" if wanted is int else "number"
        return {"anyOf": [{"type": kind}, {"type": "string", "pattern": r"^-?[0-9]+(\.[0-9]*)?$"}, TEMPLATE]}
    if wanted is str:
        return {"type": ["string", "number", "boolean"]}
    # A mode that is a number is a mistake: YAML turns 0644 into 420.
    return {"type": "string", **({"examples": ["0644", "u=rw,go=r"]} if wanted is api.Mode else {})}
