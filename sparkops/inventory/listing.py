"""An inventory as `ansible-inventory` shows it: the document of `--list`, and the tree of `--graph`."""

from __future__ import annotations

import datetime
import json
from collections.abc import Collection
from typing import Any

from sparkops.errors import InputError
from sparkops.inventory.inventory import Inventory
from sparkops.project.near import did_you_mean
from sparkops.project.values import Unsafe

# Deeper than any graph people read, and well inside Python's recursion limit.
MAX_DEPTH = 200

# Ansible gives these itself, and lists none of them.
INTERNAL = frozenset({
    "ansible_async_path", "ansible_collection_name", "ansible_config_file", "ansible_dependent_role_names",
    "ansible_diff_mode", "ansible_facts", "ansible_forks", "ansible_inventory_sources", "ansible_limit",
    "ansible_play_batch", "ansible_play_hosts", "ansible_play_hosts_all", "ansible_play_role_names",
    "ansible_playbook_python", "ansible_role_name", "ansible_role_names", "ansible_run_tags", "ansible_skip_tags",
    "ansible_verbosity", "ansible_version", "inventory_dir", "inventory_file", "inventory_hostname",
    "inventory_hostname_short", "groups", "group_names", "hostvars", "playbook_dir", "play_hosts", "role_name",
    "role_names", "role_path", "role_uuid",
})  # fmt: skip


def document(inventory: Inventory, hosts: Collection[str] | None = None) -> dict[str, Any]:
    """What an executable inventory answers to --list: each group's own hosts and children, and `_meta.hostvars`.

    hosts: only these (None: all).
    """
    chosen = [name for name in inventory.members["all"] if hosts is None or name in hosts]
    among = set(chosen)
    shown: dict[str, Any] = {}
    for name in inventory.groups:
        group = inventory.groups[name]
        own = [] if name == "all" else [host for host in group.hosts if host in among]
        entry = {"hosts": own, "children": list(group.children)}
        if any(entry.values()):
            shown[name] = {word: names for word, names in entry.items() if names}
    shown["_meta"] = {"hostvars": {name: found for name in chosen if (found := hostvars(inventory, name))}}
    return shown


def hostvars(inventory: Inventory, name: str) -> dict[str, Any]:
    """A host's variables as JSON has them, without those that Ansible gives itself."""
    return {key: jsonable(value) for key, value in inventory.hosts[name].vars.items() if key not in INTERNAL}


def jsonable(value: Any) -> Any:
    """Dates in ISO's form; a text that is never a template as Ansible marks it; keys as JSON's texts."""
    if isinstance(value, Unsafe):
        return {"__ansible_unsafe": str(value)}
    if isinstance(value, dict):
        return {key if isinstance(key, str) else _key(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [jsonable(item) for item in value]
    return value.isoformat() if isinstance(value, datetime.date) else value


def _key(key: Any) -> str:
    return json.dumps(key) if isinstance(key, (int, float, type(None))) else str(key)


def graph(inventory: Inventory, top: str = "all", with_vars: bool = False) -> list[str]:
    """The lines of a tree below a group, in Ansible's drawing. Raises InputError when there is no such group."""
    if top not in inventory.groups:
        hint = did_you_mean(top, inventory.groups, f"groups that exist: {', '.join(list(inventory.groups)[:12])}")
        raise InputError(f"there is no group {top!r}", hint=hint)
    return _tree(inventory, top, with_vars, 0)


def _tree(inventory: Inventory, name: str, with_vars: bool, depth: int) -> list[str]:
    if depth > MAX_DEPTH:
        raise InputError(f"the groups above {name!r} are more than {MAX_DEPTH} levels; start the graph further down")
    group = inventory.groups[name]
    lines = [_line(f"@{name}:", depth)]
    for child in group.children:
        lines += _tree(inventory, child, with_vars, depth + 1)
    for host in group.hosts if name != "all" else ():
        lines.append(_line(host, depth + 1))
        if with_vars:
            lines += _variables(inventory.hosts[host].vars, depth + 2)
    if with_vars:
        own: dict[str, Any] = {}
        for layer in inventory.group_vars(name):
            own.update(layer.vars)
        if group.priority != 1:
            own["ansible_group_priority"] = group.priority
        lines += _variables(own, depth + 1)
    return lines


def _variables(values: dict[str, Any], depth: int) -> list[str]:
    return [_line(f"{{{key} = {value}}}", depth) for key, value in sorted(values.items()) if key not in INTERNAL]


def _line(text: str, depth: int) -> str:
    return "  |" * depth + f"--{text}" if depth else text
