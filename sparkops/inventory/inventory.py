"""`load` reads inventory sources; `Inventory` answers which hosts a pattern means."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from sparkops.errors import InputError
from sparkops.inventory import patterns
from sparkops.inventory.groups import Group, Layer, Sources
from sparkops.inventory.merge import Host, merge
from sparkops.inventory.names import check_host_name, short_name, split_port
from sparkops.inventory.yaml_source import read_yaml
from sparkops.project.near import did_you_mean, near
from sparkops.project.yaml import read

# Ansible's: what a directory of sources may hold beside sources.
_IGNORED_NAMES = ("host_vars", "group_vars", "vars_plugins")
_IGNORED_ENDINGS = (
    ".pyc", ".pyo", ".swp", ".bak", "~", ".rpm", ".md", ".txt", ".rst", ".orig", ".cfg", ".retry",
)  # fmt: skip


class NoMatch(InputError):
    """A pattern leaves no host."""


class Inventory:
    """Hosts in the order of their sources, each with its merged variables, and groups."""

    def __init__(self, hosts: dict[str, Host], groups: dict[str, Group], members: dict[str, list[str]]) -> None:
        self.hosts = hosts
        self.groups = groups
        self.members = members

    def host_names(self) -> Iterable[str]:
        return self.hosts

    def group_members(self) -> dict[str, list[str]]:
        return self.members

    def select(self, pattern: str, limit: str | None = None) -> list[Host]:
        """The hosts of a pattern, narrowed by `limit` (a pattern; @FILE names one a line).

        Raises NoMatch when none is left. `localhost` needs no inventory.
        """
        wanted, unknown = patterns.match(patterns.split(pattern), self)
        if limit is not None:
            within, unknown_limits = patterns.match(_limits(limit), self)
            wanted = [name for name in wanted if name in set(within)]
            unknown = unknown + unknown_limits
        if not wanted:
            raise self._no_match(pattern, limit, unknown)
        return [self.host(name) for name in wanted]

    def unmatched(self, pattern: str) -> list[str]:
        """The parts of a pattern that match no host and no group; Ansible warns of these and goes on."""
        return patterns.match(patterns.split(pattern), self)[1]

    def host(self, name: str) -> Host:
        """The host of that name; this machine for `localhost` when no source names it. Raises InputError."""
        if name in self.hosts:
            return self.hosts[name]
        if name in patterns.LOCALHOST:
            return self._this_machine(name)
        raise InputError(f"there is no host {name!r}", hint=did_you_mean(name, self.hosts))

    def _this_machine(self, name: str) -> Host:
        variables = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
        names = {"inventory_hostname": name, "inventory_hostname_short": short_name(name)}
        magic: dict[str, Any] = {
            **names,
            "group_names": [],
            "groups": self.members,
            "inventory_file": None,
            "inventory_dir": None,
        }
        layers = [self.groups["all"].inline, Layer("this machine", variables), Layer("magic", magic)]
        return Host(name, {key: value for layer in layers for key, value in layer.vars.items()}, layers)

    def _no_match(self, pattern: str, limit: str | None, unknown: list[str]) -> NoMatch:
        known = [*self.members, *self.hosts]
        what = f"no host matches {pattern!r}" + (f" within the limit {limit!r}" if limit is not None else "")
        names = [name for name in (near(part.lstrip("&!"), known) for part in unknown) if name]
        if names:
            return NoMatch(what, hint=f"did you mean {' or '.join(map(repr, dict.fromkeys(names)))}?")
        some = ", ".join([*self.members, *self.hosts][:12])
        return NoMatch(
            what, hint=f"groups and hosts that exist: {some}" if self.hosts else "the inventory has no hosts"
        )


def load(sources: Sequence[str], also: Sequence[Path] = ()) -> Inventory:
    """Reads inventory sources: YAML files, directories of them, or names in a list (`host1,host2,`); later ones win.

    `also`: further folders whose group_vars and host_vars count, after those beside the sources (a playbook's).
    Raises InputError.
    """
    found = Sources()
    folders: list[Path] = []
    for source in sources:
        path = Path(source).expanduser()
        if "," in source and not path.exists():
            _read_names(source, found)
            continue
        folders.append(path if path.is_dir() else path.parent)
        _read_path(path, source, found)
    found.settle()
    hosts = merge(found, list(dict.fromkeys([*folders, *also])))
    members = {name: found.members(name) for name in found.groups}
    return Inventory(hosts, found.groups, members)


def _read_names(source: str, found: Sources) -> None:
    for text in filter(None, map(str.strip, source.split(","))):
        name, port = split_port(text)
        try:
            check_host_name(name)
        except ValueError as error:
            raise InputError(f"the inventory {source!r}: {error}") from None
        if name in found.hosts:
            continue
        host = found.host(name, source)
        found.add_host("ungrouped", name)
        if port is not None:
            host.inline.set("ansible_port", port, None)


def _read_path(path: Path, source: str, found: Sources) -> None:
    if path.is_dir():
        for inside in sorted(path.iterdir()):
            name = inside.name
            if not (name.startswith(".") or name in _IGNORED_NAMES or name.endswith(_IGNORED_ENDINGS)):
                _read_path(inside, str(inside), found)
    elif not path.exists():
        hint = None if "/" in source or "." in source else f"a list of hosts ends with a comma: -i {source},"
        raise InputError("there is no such inventory", where=source, hint=hint)
    elif path.suffix in (".yml", ".yaml", ".json"):
        read_yaml(path, found)
    elif path.is_file() and os.access(path, os.X_OK):
        raise InputError("executable inventories are not supported", where=source, hint="write a YAML inventory")
    else:
        read(path)
        raise InputError("an inventory is a .yml, .yaml or .json file", where=source, hint="write it as YAML")


def _limits(limit: str) -> list[str]:
    """The single patterns of a --limit; @FILE stands for the lines of a file."""
    found: list[str] = []
    for part in patterns.split(limit):
        lines = read(Path(part[1:])).split("\n") if part.startswith("@") else [part]
        found += [line.strip() for line in lines if line.strip()]
    return found
