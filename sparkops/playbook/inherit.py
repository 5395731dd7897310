"""How words go down from plays, blocks and imports to tasks, as Ansible hands them down."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sparkops.errors import InputError
from sparkops.playbook.model import Words
from sparkops.project.yaml import position


def under(outer: Words, item: Mapping[str, Any]) -> Words:
    """The words of `item` on top of those around it. Raises InputError for a value of the wrong kind."""
    return Words(
        when=(*outer.when, *conditions(item, "when")),
        vars={**outer.vars, **mapping(item, "vars")},
        params=outer.params,
        tags=outer.tags | tags(item),
        environment=(*outer.environment, *environments(item)),
        become=item.get("become", outer.become),
        become_user=item.get("become_user", outer.become_user),
        check_mode=item.get("check_mode", outer.check_mode),
        delegate_to=item.get("delegate_to", outer.delegate_to),
        ignore_errors=item.get("ignore_errors", outer.ignore_errors),
        no_log=item.get("no_log", outer.no_log),
        run_once=item.get("run_once", outer.run_once),
        timeout=item.get("timeout", outer.timeout),
    )


def conditions(item: Mapping[str, Any], key: str) -> tuple[Any, ...]:
    """A word that is a condition or a list of them."""
    value = item.get(key)
    if value is None:
        return ()
    return tuple(value) if isinstance(value, list) else (value,)


def mapping(item: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """A word that is a mapping, {} when it is not there."""
    value = item.get(key)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InputError(f"{key} must be a mapping, not {type(value).__name__}", where=position(item, key))
    return value


def strings(item: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """A word that is text or a list of texts."""
    value = item.get(key)
    if value is None:
        return ()
    values = value if isinstance(value, list) else [value]
    if not all(isinstance(one, str) for one in values):
        raise InputError(f"{key} must be text or a list of texts", where=position(item, key))
    return tuple(values)


def tags(item: Mapping[str, Any]) -> frozenset[str]:
    """Tags: a list, or text with commas. Raises InputError for a template: tags are read before any host is known."""
    value = item.get("tags")
    if "{{" in str(value):
        raise InputError("a tag cannot be a template", where=position(item, "tags"))
    values = value if isinstance(value, list) else [] if value is None else [value]
    return frozenset(part.strip() for one in values for part in str(one).split(",") if part.strip())


def environments(item: Mapping[str, Any]) -> tuple[Any, ...]:
    """The environment: a mapping, a template of one, or a list of these."""
    value = item.get("environment")
    if value is None:
        return ()
    values = value if isinstance(value, list) else [value]
    for one in values:
        if not isinstance(one, (Mapping, str)):
            raise InputError("environment must be a mapping of names to values", where=position(item, "environment"))
    return tuple(values)
