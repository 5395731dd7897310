"""`load` reads inventory sources; `Inventory` answers which hosts a pattern means."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from sparkops.errors import InputError
from sparkops.inventory import patterns
from sparkops.inventory.groups import Group, Layer, Sources
from sparkops.inventory.merge import Host, Merger
from sparkops.inventory.sources import read_source
from sparkops.project.near import did_you_mean, near
from sparkops.project.yaml import read


class NoMatch(InputError):
    """A pattern leaves no host."""


class Inventory:
    """Hosts in the order of their sources, each with its merged variables, and groups.

    members: the hosts of each group, those of its children included. warnings: what sources said that stops nothing.
    """

    def __init__(self, sources: Sources, merger: Merger) -> None:
        self._merger = merger
        self.hosts: dict[str, Host] = merger.hosts()
        self.groups: dict[str, Group] = sources.groups
        self.members: dict[str, list[str]] = merger.members
        self.warnings = sources.warnings

    def host_names(self) -> Iterable[str]:
        return self.hosts

    def group_members(self) -> dict[str, list[str]]:
        return self.members

    def select(self, pattern: str, limit: str | None = None) -> list[Host]:
        """The hosts of a pattern, narrowed by `limit` (a pattern too); @FILE in either names one pattern a line.

        Raises InputError for a pattern that says nothing, NoMatch when no host is left. `localhost` needs no inventory.
        """
        wanted, unknown = patterns.match(_single("the pattern", pattern), self)
        if limit is not None:
            within, unknown_limits = patterns.match(_single("the limit", limit), self)
            wanted = [name for name in wanted if name in set(within)]
            unknown = unknown + unknown_limits
        if not wanted:
            raise self._no_match(pattern, limit, unknown)
        return [self.host(name) for name in wanted]

    def unmatched(self, pattern: str) -> list[str]:
        """The parts of a pattern that match no host and no group; Ansible warns of these and goes on."""
        return patterns.match(_single("the pattern", pattern), self)[1]

    def host(self, name: str) -> Host:
        """The host of that name; this machine for `localhost` when no source names it. Raises InputError."""
        if name in self.hosts:
            return self.hosts[name]
        if name in patterns.LOCALHOST:
            return self._merger.this_machine(name)
        raise InputError(f"there is no host {name!r}", hint=did_you_mean(name, self.hosts))

    def group_vars(self, name: str) -> list[Layer]:
        """What the sources and the files beside them say of a group itself, weakest first."""
        return self._merger.group_vars(name)

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
    """Reads inventory sources: files (YAML, JSON, INI), directories of them, executables, or names in a list
    (`host1,host2,`); later ones win.

    `also`: further folders whose group_vars and host_vars count, after those beside the sources (a playbook's).
    Raises InputError.
    """
    found = Sources()
    folders = [folder for source in sources if (folder := read_source(source, found))]
    found.settle()
    return Inventory(found, Merger(found, folders, also))


def _single(what: str, text: str) -> list[str]:
    """The single patterns of a pattern; @FILE stands for the lines of a file. Raises InputError when there is none."""
    found: list[str] = []
    for part in patterns.split(text):
        lines = read(Path(part[1:])).split("\n") if part.startswith("@") else [part]
        found += [line.strip() for line in lines if line.strip()]
    if not found:
        raise InputError(f"{what} {text!r} names no host", hint="every host is called: all")
    return found
