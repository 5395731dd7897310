"""A YAML inventory: groups at the top, each with `hosts`, `vars` and `children`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sparkops.errors import InputError, Position
from sparkops.inventory.groups import Layer, Sources
from sparkops.inventory.names import check_host_name, expand, split_port
from sparkops.project import yaml
from sparkops.project.near import did_you_mean
from sparkops.project.values import key_position, position

WORDS = ("hosts", "vars", "children")


def read_yaml(path: Path, sources: Sources) -> None:
    """Adds what the file defines to `sources`. Raises InputError."""
    document = yaml.load(path)
    if document is None:
        raise InputError("the inventory is empty", where=str(path))
    top = _mapping(document, "an inventory is a mapping of groups", position(document) or str(path))
    if "plugin" in top:
        raise InputError(
            "inventory plugins are not supported",
            where=key_position(top, "plugin"),
            hint="an executable that answers --list, or a YAML inventory, takes its place",
        )
    for name in top:
        if name in WORDS:
            raise InputError(
                f"{name!r} stands where groups are named",
                where=key_position(top, name),
                hint=f"put it under a group, for example 'all:' with '{name}:' indented below it",
            )
        _read_group(_name(top, name, "group"), top[name], position(top, name), str(path.absolute()), sources)


def _read_group(name: str, body: Any, where: Position | None, file: str, sources: Sources) -> None:
    group = sources.group(name)
    if body is None:
        return
    entries = _mapping(body, f"the group {name!r} needs a mapping of hosts, vars and children", where)
    for word in entries:
        if word not in WORDS:
            raise InputError(
                f"{word!r} is no word of a group ({', '.join(WORDS)})",
                where=key_position(entries, word),
                hint=did_you_mean(str(word), WORDS, "hosts and groups are named below 'hosts:' and 'children:'"),
            )
    # In the file's order: it is the order of hosts.
    for word in entries:
        if word == "vars":
            _read_vars(group.inline, entries, "vars")
        elif word == "children":
            for child, child_body, at, body_at in _section(entries, word):
                sources.group(child)
                sources.add_child(name, child, at)
                _read_group(child, child_body, body_at, file, sources)
        else:
            for pattern, variables, at, _ in _section(entries, word):
                _read_hosts(name, pattern, variables, at, file, sources)
    if "ansible_group_priority" in group.inline.vars:
        group.priority = _priority(group.inline)


def _read_hosts(group: str, pattern: str, variables: Any, at: Position | None, file: str, sources: Sources) -> None:
    text, port = split_port(pattern)
    try:
        names = expand(text)
        for name in names:
            check_host_name(name)
    except ValueError as error:
        raise InputError(f"{pattern!r}: {error}", where=at) from None
    for name in names:
        known = name in sources.hosts
        host = sources.host(name, file)
        sources.add_host(group, name)
        if port is not None and not known:
            host.inline.set("ansible_port", port, at)
        if variables is not None:
            _read_vars(host.inline, {"vars": variables}, "vars", f"the variables of host {name!r}")


def _read_vars(layer: Layer, entries: Any, word: str, what: str = "'vars'") -> None:
    if entries.get(word) is None:
        return
    variables = _mapping(entries[word], f"{what} must be a mapping", position(entries, word) or position(entries[word]))
    for name in variables:
        layer.set(_name(variables, name, "variable"), variables[name], position(variables, name))


def _section(entries: Any, word: str) -> list[tuple[str, Any, Position | None, Position | None]]:
    """(name, body, the name's position, the body's) of each entry below `hosts:` or `children:`."""
    section = entries.get(word)
    if section is None:
        return []
    at = position(entries, word)
    if isinstance(section, str):
        return [(section, None, at, at)]
    what = f"'{word}' must be a mapping: each name on its own line, with a colon after it"
    named = _mapping(section, what, at)
    kind = "host" if word == "hosts" else "group"
    return [(_name(named, key, kind), named[key], key_position(named, key), position(named, key)) for key in named]


def _mapping(value: Any, message: str, where: Position | str | None) -> Any:
    if not isinstance(value, dict):
        raise InputError(f"{message}, not {_kind(value)}", where=where)
    return value


def _kind(value: Any) -> str:
    return "a list" if isinstance(value, list) else f"{value!r}"


def _name(container: Any, key: Any, kind: str) -> str:
    if not isinstance(key, str) or not key.strip():
        raise InputError(f"a {kind}'s name is a text, not {key!r}", where=key_position(container, key), hint="quote it")
    return str(key)


def _priority(layer: Layer) -> int:
    origin = layer.origins.pop("ansible_group_priority", None)
    value = layer.vars.pop("ansible_group_priority")
    try:
        return int(value)
    except (TypeError, ValueError):
        raise InputError(f"ansible_group_priority is a whole number, not {value!r}", where=origin) from None
