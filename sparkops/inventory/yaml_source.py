"""A YAML inventory: groups at the top, each with `hosts`, `vars` and `children`."""

from __future__ import annotations

from typing import Any

from sparkops.errors import InputError, Position
from sparkops.inventory.groups import Sources
from sparkops.inventory.names import hosts_of
from sparkops.project.near import did_you_mean
from sparkops.project.values import key_position, position

WORDS = ("hosts", "vars", "children")


def read_yaml(top: dict[Any, Any], file: str, sources: Sources) -> None:
    """Adds what a YAML document defines to `sources`; `file` is its absolute path. Raises InputError."""
    if top.get("plugin"):
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
        _read_group(_name(top, name, "group"), top[name], position(top, name), file, sources)


def _read_group(name: str, body: Any, where: Position | None, file: str, sources: Sources) -> None:
    sources.group(name)
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
            _read_vars(name, entries, word, sources)
        elif word == "children":
            for child, child_body, at, body_at in _section(entries, word):
                sources.group(child)
                sources.add_child(name, child, at)
                _read_group(child, child_body, body_at, file, sources)
        else:
            for pattern, variables, at, _ in _section(entries, word):
                _read_hosts(name, pattern, variables, at, file, sources)


def _read_hosts(group: str, pattern: str, variables: Any, at: Position | None, file: str, sources: Sources) -> None:
    try:
        names, port = hosts_of(pattern)
    except ValueError as error:
        raise InputError(f"{pattern!r}: {error}", where=at) from None
    for name in names:
        sources.host(name, file, port, at)
        sources.add_host(group, name)
        # As Ansible has it, an empty list or text is no variables too.
        if variables:
            _read_vars(name, {"vars": variables}, "vars", sources, f"the variables of host {name!r}")


def _read_vars(name: str, entries: Any, word: str, sources: Sources, what: str = "'vars'") -> None:
    if entries.get(word) is None:
        return
    variables = _mapping(entries[word], f"{what} must be a mapping", position(entries, word) or position(entries[word]))
    for variable in variables:
        at = position(variables, variable)
        sources.set(name, _name(variables, variable, "variable"), variables[variable], at)


def _section(entries: Any, word: str) -> list[tuple[str, Any, Position | None, Position | None]]:
    """(name, body, the name's position, the body's) of each entry below `hosts:` or `children:`."""
    section = entries.get(word)
    if section is None:
        return []
    at = position(entries, word)
    if isinstance(section, str):
        return [(str(section), None, at, at)]
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
