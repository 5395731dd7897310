"""One task of a playbook: its module, arguments and words, checked as far as they can be without a host."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sparkops.errors import InputError, Position
from sparkops.playbook import inherit, keyvalue, modules, words
from sparkops.playbook.arguments import check_names
from sparkops.playbook.model import LoopControl, Task, Words
from sparkops.project.near import did_you_mean
from sparkops.project.yaml import key_position, position


def read_task(item: Any, where: Position, file: str, outer: Words, handler: bool) -> Task:
    """A task or handler. Raises InputError with its position."""
    is_mapping(item, "a task", where)
    known = words.HANDLER if handler else words.TASK
    name, key = find_module(item, where, known, "handler" if handler else "task")
    if name == "include_tasks":
        known = words.INCLUDE
        check_words(item, known | {key}, "include_tasks")
    module = modules.module(name)
    args = _arguments(item, key, module, where)
    check_names(module, args, where)
    loop, lookup = _loop(item)
    own = inherit.under(outer, item)
    if name == "include_tasks":
        own = replace(own, params={**own.params, **inherit.mapping(item, "vars")})
    return Task(
        name=str(item.get("name") or name),
        module=name,
        args=args,
        position=where,
        file=file,
        words=own,
        outer=outer,
        loop=loop,
        with_lookup=lookup,
        loop_control=_loop_control(item),
        register=_register(item),
        notify=inherit.strings(item, "notify"),
        listen=inherit.strings(item, "listen"),
        changed_when=inherit.conditions(item, "changed_when") if "changed_when" in item else None,
        failed_when=inherit.conditions(item, "failed_when") if "failed_when" in item else None,
        until=inherit.conditions(item, "until") if {"until", "retries"} & item.keys() else None,
        retries=item.get("retries", 3),
        delay=item.get("delay", 5),
    )


def plain_name(key: Any) -> str:
    """A module's name without its collection, where that is Ansible's own."""
    text = str(key)
    return next((text[len(prefix) :] for prefix in modules.PREFIXES if text.startswith(prefix)), text)


def find_module(item: Mapping[str, Any], where: Position, known: frozenset[str], what: str) -> tuple[str, Any]:
    """The one key of a task that is a module: (its name, the key). Raises InputError."""
    found = []
    for key in item:
        if key in known:
            continue
        if plain_name(key) in modules.names():
            found.append((plain_name(key), key))
        else:
            raise unknown_word(key, item, known, what)
    if not found:
        raise InputError(f"this {what} has no module", where=where, hint="for example `file:` or `command:`")
    if len(found) > 1:
        both = " and ".join(name for name, _ in found)
        raise InputError(f"a {what} has one module, this one has {both}", where=where)
    return found[0]


def check_words(item: Mapping[str, Any], known: frozenset[str], what: str) -> None:
    """Raises InputError for the first word that is not known."""
    for key in item:
        if key not in known:
            raise unknown_word(key, item, known, what)


def unknown_word(key: Any, item: Mapping[str, Any], known: frozenset[str], what: str) -> InputError:
    """The error for a word that has no meaning at this place."""
    where = key_position(item, key)
    name = plain_name(key)
    if name in words.ANSIBLES and name not in known:
        reason = words.REFUSED.get(name)
        return InputError(f"{key}: Ansible has this word, sparkops does not support it here", where=where, hint=reason)
    takes_modules = what in ("task", "handler")
    candidates = [*known, *(modules.names() if takes_modules else ())]
    kind = f"module or word of a {what}" if takes_modules else f"word of a {what}"
    return InputError(f"{key!r} is no {kind}", where=where, hint=did_you_mean(str(key), candidates))


def is_mapping(item: Any, what: str, where: Position) -> None:
    """Raises InputError when `item` is something else than a mapping."""
    if not isinstance(item, Mapping):
        raise InputError(f"{what} is a mapping of words to values, not {type(item).__name__}", where=where)


def _arguments(item: Mapping[str, Any], key: Any, module: modules.Module, where: Position) -> Mapping[str, Any]:
    raw, more = item[key], inherit.mapping(item, "args")
    if isinstance(raw, Mapping):
        return {**more, **raw} if more else raw
    if raw is None:
        return more
    place = position(item, key) or where
    if isinstance(raw, list):
        raise InputError(
            f"{module.name} takes its arguments as a mapping",
            where=place,
            hint=f"it takes: {', '.join(sorted(module.fields))}",
        )
    if module.free_form:
        known = module.fields.keys() | module.aliases.keys()
        pairs, rest = keyvalue.split(raw, known, place) if isinstance(raw, str) else ({}, raw)
        return {**more, **({module.free_form: rest} if rest or not pairs else {}), **pairs}
    pairs, _ = keyvalue.split(str(raw), None, place)
    return {**more, **pairs}


def _register(item: Mapping[str, Any]) -> str | None:
    register = item.get("register")
    if register is not None and not str(register).isidentifier():
        hint = "letters, digits and underscores, not starting with a digit"
        raise InputError(f"{register!r} cannot be a variable's name", where=position(item, "register"), hint=hint)
    return register


def _loop(item: Mapping[str, Any]) -> tuple[Any, str | None]:
    given = [key for key in item if key == "loop" or key in words.LOOPS]
    if len(given) > 1:
        raise InputError(f"a task has one loop, this one has {' and '.join(given)}", where=key_position(item, given[1]))
    if not given:
        return None, None
    value = item[given[0]]
    if given[0] == "loop":
        if not isinstance(value, (list, str)):
            raise InputError("loop must be a list or a template of one", where=position(item, "loop"))
        return value, None
    # `with_items:` without a value loops over nothing, which `loop: null` could not say.
    return ([] if value is None else value), words.LOOPS[given[0]]


def _loop_control(item: Mapping[str, Any]) -> LoopControl:
    control = inherit.mapping(item, "loop_control")
    check_words(control, words.LOOP_CONTROL, "loop_control")
    for key in ("loop_var", "index_var"):
        if key in control and not str(control[key]).isidentifier():
            raise InputError(f"{control[key]!r} cannot be a variable's name", where=position(control, key))
    try:
        pause = float(control.get("pause", 0))
    except (TypeError, ValueError):
        pause = math.nan
    if not 0 <= pause < math.inf:
        raise InputError("pause is a number of seconds", where=position(control, "pause"))
    return LoopControl(control.get("loop_var", "item"), control.get("index_var"), control.get("label"), pause)
