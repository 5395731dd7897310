"""What inventory sources are read into: groups and hosts with the variables that each source gives them."""

from __future__ import annotations

from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from itertools import pairwise
from typing import Any

from sparkops.errors import InputError, Position

# Where a value stands: a place in a file, or the source (a script, a list of hosts) when it has no lines.
Origin = Position | str


@dataclass
class Layer:
    """Variables from one kind of place, called `name`, each with its origin where there is one.

    `beaten`: values that a later line or source of the same kind replaced, the oldest first.
    """

    name: str
    vars: dict[str, Any] = field(default_factory=dict)
    origins: dict[str, Origin] = field(default_factory=dict)
    beaten: dict[str, list[tuple[Any, Origin | None]]] = field(default_factory=dict)

    def set(self, variable: str, value: Any, origin: Origin | None) -> None:
        if variable in self.vars:
            before = self.vars[variable], self.origins.pop(variable, None)
            self.beaten.setdefault(variable, []).append(before)
        self.vars[variable] = value
        if origin is not None:
            self.origins[variable] = origin


@dataclass
class Group:
    """A group: its own hosts and child groups by name, in the order that sources name them.

    `hosts` is a dict as an ordered set; `children` say where each was put inside.
    """

    name: str
    inline: Layer
    hosts: dict[str, None] = field(default_factory=dict)
    children: dict[str, Origin | None] = field(default_factory=dict)
    priority: int = 1

    def set(self, variable: str, value: Any, origin: Origin | None) -> None:
        """`ansible_group_priority` is the group's own; any other is its hosts'. Raises InputError."""
        if variable != "ansible_group_priority":
            self.inline.set(variable, value, origin)
            return
        try:
            self.priority = int(value)
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"ansible_group_priority is a whole number, not {value!r}", where=origin) from None


@dataclass
class Entry:
    """A host as sources define it; `file` is the first source that names it."""

    name: str
    inline: Layer
    file: str | None

    def set(self, variable: str, value: Any, origin: Origin | None) -> None:
        self.inline.set(variable, value, origin)


class Sources:
    """All sources together, before variables are merged. `warnings` stop nothing but should be read."""

    def __init__(self) -> None:
        self.groups: dict[str, Group] = {}
        self.hosts: dict[str, Entry] = {}
        self.warnings: list[str] = []
        self.group("all")
        self.group("ungrouped")
        self.groups["all"].children["ungrouped"] = None

    def group(self, name: str) -> Group:
        """The group of that name, made when there is none."""
        return self.groups.setdefault(name, Group(name, Layer(f"group {name}")))

    def host(self, name: str, file: str | None, port: int | None = None, origin: Origin | None = None) -> Entry:
        """The host of that name, made when there is none; only then its port counts."""
        found = self.hosts.get(name)
        if found is None:
            found = self.hosts[name] = Entry(name, Layer(f"host {name}"), file)
            if port:
                found.set("ansible_port", port, origin)
        return found

    def set(self, name: str, variable: str, value: Any, origin: Origin | None) -> None:
        """Give a group or host a variable. A name that is both means the group, as in Ansible. Raises InputError."""
        holder: Group | Entry = self.groups[name] if name in self.groups else self.hosts[name]
        holder.set(variable, value, origin)

    def add_host(self, group: str, host: str) -> None:
        self.group(group).hosts[host] = None

    def add_child(self, parent: str, child: str, where: Origin | None) -> None:
        """Raises InputError for a circle, for `all` inside a group, and for `ungrouped` inside any but `all`."""
        if parent == child:
            raise InputError(f"the groups go in a circle: {parent!r} would hold itself", where=where)
        if parent in self.descendants(child):
            raise self._circle(parent, child, where)
        if child == "all":
            raise InputError(f"'all' holds every group, so it cannot be inside {parent!r}", where=where)
        if child == "ungrouped" and parent != "all":
            hint = "hosts that stand there would be in a group; make a group of your own for them"
            raise InputError(f"'ungrouped' cannot be inside {parent!r}", where=where, hint=hint)
        self.group(parent).children.setdefault(child, where)

    def _circle(self, parent: str, child: str, where: Origin | None) -> InputError:
        """The error that `child` inside `parent` is: the way back from `child`, and where its steps stand."""
        way = [child]
        while way[-1] != parent:
            way.append(next(name for name in self.groups[way[-1]].children if parent in self.descendants(name)))
        steps = [(upper, lower, self.groups[upper].children[lower]) for upper, lower in pairwise(way)]
        told = "; ".join(f"{lower!r} was put inside {upper!r} at {at}" for upper, lower, at in steps if at)
        chain = " > ".join([parent, *way])
        return InputError(f"the groups go in a circle: {chain}", where=where, hint=told or "remove one of them")

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
        """Ansible's ground rules: every group is below `all`, every host in it, homeless ones in `ungrouped`.

        Raises InputError for a circle.
        """
        below = {child for group in self.groups.values() for child in group.children}
        for name in self.groups:
            if name != "all" and name not in below:
                self.add_child("all", name, None)
        own = (group.hosts for name, group in self.groups.items() if name not in ("all", "ungrouped"))
        placed = {host for hosts in own for host in hosts}
        ungrouped = self.groups["ungrouped"]
        ungrouped.hosts = {host: None for host in ungrouped.hosts if host not in placed}
        for host in self.hosts:
            if host in placed or host in ungrouped.hosts:
                continue
            if host in self.groups:
                # As in Ansible: where a host and a group share a name, it means the group.
                self.add_child("ungrouped", host, self.hosts[host].file)
            else:
                ungrouped.hosts[host] = None

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
