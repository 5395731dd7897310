"""Merges what sources and files say into one set of variables a host, by Ansible's precedence."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from sparkops.inventory.groups import Entry, Layer, Origin, Sources
from sparkops.inventory.names import short_name
from sparkops.inventory.vars_files import VarsFolder


@dataclass
class Host:
    """A host with its variables. `layers` are what they were merged from, weakest first; later ones win."""

    name: str
    vars: dict[str, Any]
    layers: list[Layer]

    @property
    def origins(self) -> dict[str, Origin]:
        """Where each variable's value stands; magic variables and values without a place are left out."""
        found: dict[str, Origin] = {}
        for layer in self.layers:
            for name in layer.vars:
                found.pop(name, None)
            found.update(layer.origins)
        return found


class Merger:
    """Knows the groups of each host and reads each file of variables once.

    folders, also: where group_vars and host_vars are, weakest first: beside the sources, then beside a playbook.
    members: the hosts of each group, those of its children included.
    """

    def __init__(self, sources: Sources, folders: Sequence[Path], also: Sequence[Path] = ()) -> None:
        self.sources = sources
        self.members = {name: sources.members(name) for name in sources.groups}
        self._own = _last(folders)
        self._beside = _last([*folders, *also])
        self._groups_of: dict[str, list[str]] = {name: [] for name in sources.hosts}
        depths = sources.depths()
        for group in sorted(sources.groups, key=lambda name: (depths[name], sources.groups[name].priority, name)):
            for host in self.members[group]:
                self._groups_of[host].append(group)
        self._files = cache(self._read)
        self._shared = cache(self._of_groups)

    def hosts(self) -> dict[str, Host]:
        """All hosts, in the sources' order. Raises InputError."""
        return {name: self._host(entry, self._groups_of[name]) for name, entry in self.sources.hosts.items()}

    def this_machine(self, name: str) -> Host:
        """`localhost` that no source names: in no group, but with the variables of `all`. Raises InputError."""
        layer = Layer("this machine", {"ansible_connection": "local", "ansible_python_interpreter": sys.executable})
        return self._host(Entry(name, layer, None), [])

    def group_vars(self, name: str) -> list[Layer]:
        """What sources and the files beside them say of one group itself, weakest first. Raises InputError."""
        files = [layer for folder in self._own for layer in self._files(folder, "group_vars", name)]
        return [layer for layer in (self.sources.groups[name].inline, *files) if layer.vars]

    def _read(self, folder: VarsFolder, kind: str, name: str) -> list[Layer]:
        return folder.layers(kind, name)

    def _of_groups(self, groups: tuple[str, ...]) -> tuple[list[Layer], dict[str, Any]]:
        """`all` first, then groups from the widest to the nearest; files beat what the inventory says inline.

        (layers, weakest first; their variables merged)
        """
        found = [self.sources.groups[name].inline for name in ("all", *groups)]
        found += [layer for folder in self._beside for layer in self._files(folder, "group_vars", "all")]
        found += [
            layer for folder in self._beside for name in groups for layer in self._files(folder, "group_vars", name)
        ]
        layers = [layer for layer in found if layer.vars]
        return layers, _merged(layers)

    def _host(self, entry: Entry, groups: list[str]) -> Host:
        below = tuple(name for name in groups if name != "all")
        shared, merged = self._shared(below)
        own = [entry.inline]
        own += [layer for folder in self._beside for layer in self._files(folder, "host_vars", entry.name)]
        own = [layer for layer in own if layer.vars]
        own.append(Layer("magic", self._magic(entry, below)))
        return Host(entry.name, merged | _merged(own), [*shared, *own])

    def _magic(self, entry: Entry, groups: Iterable[str]) -> dict[str, Any]:
        file = entry.file
        return {
            "inventory_hostname": entry.name,
            "inventory_hostname_short": short_name(entry.name),
            "group_names": sorted(groups),
            "groups": self.members,
            "inventory_file": file,
            "inventory_dir": str(Path(file).parent) if file and Path(file).is_absolute() else None,
        }


def _last(folders: Iterable[Path]) -> list[VarsFolder]:
    """Each folder once, where it stands last: there it wins."""
    found: dict[Path, VarsFolder] = {}
    for folder in folders:
        at = folder.resolve()
        found[at] = found.pop(at, VarsFolder(folder))
    return list(found.values())


def _merged(layers: Iterable[Layer]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for layer in layers:
        merged.update(layer.vars)
    return merged
