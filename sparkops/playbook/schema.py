"""The JSON Schema (draft 2020-12) of playbooks, from the parser's own words and the modules' own arguments."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterable
from typing import Any, Literal, Union

from sparkops.node import api
from sparkops.playbook import modules, words
from sparkops.playbook.manual import manual
from sparkops.playbook.modules import PREFIXES, REQUIRED

Schema = dict[str, Any]

TEMPLATE: Schema = {"type": "string", "pattern": r"\{\{|\{%"}
_TEXT: Schema = {"type": "string"}
_BOOL: Schema = {"anyOf": [{"type": "boolean"}, TEMPLATE]}
_NUMBER: Schema = {"anyOf": [{"type": "number"}, TEMPLATE]}
_TEXTS: Schema = {"anyOf": [_TEXT, {"type": "array", "items": _TEXT}]}
_VARS: Schema = {"type": ["object", "null"]}
_CONDITION: Schema = {"type": ["boolean", "string"]}
_CONDITIONS: Schema = {"anyOf": [_CONDITION, {"type": "array", "items": _CONDITION}]}
_TASKS: Schema = {"type": ["array", "null"], "items": {"$ref": "#/$defs/task"}}
_HANDLERS: Schema = {"type": ["array", "null"], "items": {"$ref": "#/$defs/handler"}}
_ANY: Schema = {}

_LOOP_CONTROL: Schema = {
    "type": "object",
    "properties": {
        "loop_var": _TEXT, "index_var": _TEXT, "label": _ANY, "pause": _NUMBER, "extended": _BOOL,
        "extended_allitems": _BOOL, "break_when": _CONDITIONS,
    },
    "additionalProperties": False,
}  # fmt: skip

# What each word may hold. Those that the parser does not know stay out of the schema.
WORDS: dict[str, Schema] = {
    "always": _TASKS, "any_errors_fatal": _BOOL, "args": _VARS, "become": _BOOL, "become_user": _TEXT,
    "block": _TASKS, "changed_when": _CONDITIONS, "check_mode": _BOOL, "delay": _NUMBER, "delegate_facts": _BOOL,
    "delegate_to": _TEXT, "diff": _BOOL, "environment": {"type": ["object", "array", "string", "null"]},
    "failed_when": _CONDITIONS, "force_handlers": _BOOL, "gather_facts": _BOOL, "gather_subset": _TEXTS,
    "handlers": _HANDLERS, "hosts": _TEXTS, "ignore_errors": _BOOL, "ignore_unreachable": _BOOL,
    "import_playbook": _TEXT, "listen": _TEXTS, "loop": {"anyOf": [{"type": "array"}, TEMPLATE]},
    "loop_control": _LOOP_CONTROL, "max_fail_percentage": _NUMBER, "name": {"type": ["string", "number"]},
    "no_log": _BOOL, "notify": _TEXTS, "order": {
        "enum": ["inventory", "sorted", "reverse_sorted", "reverse_inventory", "shuffle"]
    },
    "post_tasks": _TASKS, "pre_tasks": _TASKS, "register": {"type": "string", "pattern": r"^[A-Za-z_]\w*$"},
    "remote_user": _TEXT, "rescue": _TASKS, "retries": _NUMBER, "roles": {"type": ["array", "null"]},
    "run_once": _BOOL, "serial": {"type": ["integer", "string", "array"]}, "tags": _TEXTS, "tasks": _TASKS,
    "throttle": _NUMBER, "timeout": _NUMBER, "until": _CONDITIONS, "vars": _VARS, "vars_files": _TEXTS,
    "when": _CONDITIONS,
}  # fmt: skip


def playbook_schema() -> Schema:
    """The schema of a playbook file."""
    definitions: Schema = {f"module_{name}": module_schema(name) for name in modules.names()}
    definitions["task"] = _task(words.TASK)
    definitions["handler"] = _task(words.HANDLER)
    definitions["play"] = {
        "type": "object",
        "properties": _properties(words.PLAY),
        "additionalProperties": False,
        "anyOf": [{"required": [word]} for word in ("hosts", "import_playbook") if word in words.PLAY],
    }
    return {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/play"}, "$defs": definitions}


def _properties(known: Iterable[str]) -> Schema:
    return {word: WORDS.get(word, _ANY) for word in sorted(known)}


def _task(known: frozenset[str]) -> Schema:
    called = {f"{prefix}{name}": name for prefix in ("", *PREFIXES) for name in modules.names()}
    actions = [*called, *(("block",) if "block" in known else ())]
    return {
        "type": "object",
        "properties": {
            **_properties(known),
            **{key: {"$ref": f"#/$defs/module_{name}"} for key, name in called.items()},
        },
        "additionalProperties": False,
        "oneOf": [{"required": [action]} for action in actions],
    }


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
    mapping: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    if names:
        mapping["allOf"] = [{"anyOf": [{"required": [one]} for one in alternatives]} for alternatives in names]
    forms = [mapping, {"type": "null"}, *([{"type": ["string", "number"]}] if module.free_form else [])]
    return {"description": page.synopsis, "anyOf": forms}


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
        return {"anyOf": [{"type": "boolean"}, {"enum": ["yes", "no", "on", "off", "true", "false", 0, 1]}, TEMPLATE]}
    if wanted in (int, float):
        kind = "integer" if wanted is int else "number"
        return {"anyOf": [{"type": kind}, {"type": "string", "pattern": r"^-?[0-9]+(\.[0-9]*)?$"}, TEMPLATE]}
    if wanted is str:
        return {"type": ["string", "number", "boolean"]}
    # A mode that is a number is a mistake: YAML turns 0644 into 420.
    return {"type": "string", **({"examples": ["0644", "u=rw,go=r"]} if wanted is api.Mode else {})}
