"""Merges what sources and files say into one set of variables a host, by Ansible's precedence."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from sparkops.errors import Position
from sparkops.inventory.groups import Layer, Sources
from sparkops.inventory.names import short_name
from sparkops.inventory.vars_files import VarsFolder


@dataclass
class Host:
    """A host with its variables. `layers` are what they were merged from, weakest first; later ones win."""

    name: str
    vars: dict[str, Any]
    layers: list[Layer]

    @property
    def origins(self) -> dict[str, Position]:
        """Where each variable's value stands; magic variables and values without a place are left out."""
        found: dict[str, Position] = {}
        for layer in self.layers:
            for name in layer.vars:
                found.pop(name, None)
            found.update(layer.origins)
        return found


def merge(sources: Sources, folders: list[Path]) -> dict[str, Host]:
    """All hosts, in the sources' order. `folders` hold group_vars and host_vars, weakest first. Raises InputError."""
    beside = [VarsFolder(folder) for folder in folders]
    members = {name: sources.members(name) for name in sources.groups}
    groups_of: dict[str, list[str]] = {name: [] for name in sources.hosts}
    depths = sources.depths()
    for group in sorted(sources.groups, key=lambda name: (depths[name], sources.groups[name].priority, name)):
        for host in members[group]:
            groups_of[host].append(group)

    @cache
    def files(folder: int, kind: str, name: str) -> list[Layer]:
        return beside[folder].layers(kind, name)

    def layers(host: str) -> list[Layer]:
        """`all` first, then groups from the widest to the nearest; files beat what the inventory says inline."""
        below = [name for name in groups_of[host] if name != "all"]
        found = [sources.groups[name].inline for name in ("all", *below)]
        found += [layer for index in range(len(beside)) for layer in files(index, "group_vars", "all")]
        found += [layer for index in range(len(beside)) for name in below for layer in files(index, "group_vars", name)]
        found.append(sources.hosts[host].inline)
        found += [layer for index in range(len(beside)) for layer in files(index, "host_vars", host)]
        return [layer for layer in found if layer.vars]

    return {name: _host(name, layers(name), _magic(name, sources, groups_of[name], members)) for name in sources.hosts}


def _host(name: str, layers: list[Layer], magic: dict[str, Any]) -> Host:
    layers = [*layers, Layer("magic", magic)]
    merged: dict[str, Any] = {}
    for layer in layers:
        merged.update(layer.vars)
    return Host(name, merged, layers)


def _magic(name: str, sources: Sources, groups: list[str], members: dict[str, list[str]]) -> dict[str, Any]:
    file = sources.hosts[name].file
    return {
        "inventory_hostname": name,
        "inventory_hostname_short": short_name(name),
        "group_names": sorted(group for group in groups if group != "all"),
        "groups": members,
        "inventory_file": file,
        "inventory_dir": str(Path(file).parent) if file and Path(file).is_absolute() else None,
    }
