"""What inventory sources are read into: groups and hosts with the variables that each source gives them."""

from __future__ import annotations

from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from typing import Any

from sparkops.errors import InputError, Position


@dataclass
class Layer:
    """Variables from one place, with the position of each that has one. `name` says what kind of place."""

    name: str
    vars: dict[str, Any] = field(default_factory=dict)
    origins: dict[str, Position] = field(default_factory=dict)

    def set(self, variable: str, value: Any, origin: Position | None) -> None:
        self.vars[variable] = value
        self.origins.pop(variable, None)
        if origin is not None:
            self.origins[variable] = origin


@dataclass
class Group:
    """A group: its own hosts and child groups by name, in the order that sources name them (dicts as ordered sets)."""

    name: str
    inline: Layer
    hosts: dict[str, None] = field(default_factory=dict)
    children: dict[str, None] = field(default_factory=dict)
    priority: int = 1


@dataclass
class Entry:
    """A host as sources define it; `file` is the first source that names it."""

    name: str
    inline: Layer
    file: str | None


class Sources:
    """All sources together, before variables are merged."""

    def __init__(self) -> None:
        self.groups: dict[str, Group] = {}
        self.hosts: dict[str, Entry] = {}
        self.group("all")
        self.group("ungrouped")
        self.groups["all"].children["ungrouped"] = None

    def group(self, name: str) -> Group:
        """The group of that name, made when there is none."""
        return self.groups.setdefault(name, Group(name, Layer(f"group {name}")))

    def host(self, name: str, file: str | None) -> Entry:
        """The host of that name, made when there is none."""
        return self.hosts.setdefault(name, Entry(name, Layer(f"host {name}"), file))

    def add_host(self, group: str, host: str) -> None:
        self.group(group).hosts[host] = None

    def add_child(self, parent: str, child: str, where: Position | str | None) -> None:
        """Raises InputError when the child already holds the parent."""
        if parent in self.descendants(child):
            chain = f"{parent!r} is inside {child!r}" if parent != child else f"{parent!r} would hold itself"
            raise InputError(f"the groups go in a circle: {chain}", where=where, hint="remove one of the two")
        self.group(parent).children[child] = None

    def descendants(self, name: str) -> list[str]:
        """A group and all below it, nearer ones first, each once."""
        found = {name: None}
        level = [name]
        while level:
            below = (child for group in level for child in self.groups[group].children)
            level = [child for child in dict.fromkeys(below) if child not in found]
            found.update(dict.fromkeys(level))
        return list(found)

    def members(self, name: str) -> list[str]:
        """The hosts of a group and of all groups below it."""
        hosts = (host for group in self.descendants(name) for host in self.groups[group].hosts)
        return list(dict.fromkeys(hosts))

    def settle(self) -> None:
        """Ansible's ground rules: every group is below `all`, every host in it, homeless ones in `ungrouped`."""
        below = {child for group in self.groups.values() for child in group.children}
        for name in self.groups:
            if name != "all" and name not in below:
                self.groups["all"].children[name] = None
        own = (group.hosts for name, group in self.groups.items() if name not in ("all", "ungrouped"))
        placed = {host for hosts in own for host in hosts}
        ungrouped = self.groups["ungrouped"]
        homeless = [host for host in (*ungrouped.hosts, *self.hosts) if host not in placed]
        ungrouped.hosts = dict.fromkeys(homeless)

    def depths(self) -> dict[str, int]:
        """Each group's longest way from `all`."""
        parents: dict[str, list[str]] = {name: [] for name in self.groups}
        for group in self.groups.values():
            for child in group.children:
                parents[child].append(group.name)
        depths: dict[str, int] = {}
        for name in TopologicalSorter(parents).static_order():
            depths[name] = max((depths[parent] + 1 for parent in parents[name]), default=0)
        return depths
