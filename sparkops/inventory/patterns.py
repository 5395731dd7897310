r"""Ansible's host patterns: `all`, `a:b`, `a,b`, `a:&b`, `a:!b`, `web*`, `~web\d`, `group[0]`, `group[1:3]`."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Sequence
from typing import Protocol

from sparkops.errors import InputError
from sparkops.inventory.names import is_address, split_port

LOCALHOST = ("localhost", "127.0.0.1", "::1")

_SUBSCRIPT = re.compile(r"(?P<name>.+)\[(?:(?P<index>-?[0-9]{1,18})|(?P<first>[0-9]{1,18})[:-](?P<last>[0-9]{0,18}))\]")
_PIECE = re.compile(r"(?:[^\s:\[\]]|\[[^\]]*\])+")


class Names(Protocol):
    """What patterns are matched against."""

    def host_names(self) -> Iterable[str]:
        """All hosts, in order."""

    def group_members(self) -> dict[str, list[str]]:
        """The hosts of each group, those of its children included."""


def split(pattern: str) -> list[str]:
    """The single patterns of a list with commas, or with colons (an address with a port or a range stays whole)."""
    if "," in pattern:
        pieces = pattern.split(",")
    elif is_address(split_port(pattern)[0]):
        pieces = [pattern]
    else:
        pieces = _PIECE.findall(pattern)
    return [piece.strip() for piece in pieces if piece.strip()]


def match(patterns: Sequence[str], names: Names) -> tuple[list[str], list[str]]:
    """(host names in order, single patterns that match no group and no host). Raises InputError for a bad regex.

    Plain patterns first, then each `&`, then each `!`, whatever their order; without a plain one, `all` is meant.
    """
    plain = [pattern for pattern in patterns if pattern[0] not in "&!"]
    unmatched: list[str] = []
    found: dict[str, None] = {}
    known = set(names.host_names())
    local = _local([*plain, *(one for mark in "&!" for one in patterns if one[0] == mark)], names)
    for pattern in plain or ["all"]:
        # A host's own name is that host, even where a group has it too.
        found.update(dict.fromkeys([pattern] if pattern in known else _one(pattern, names, local, unmatched)))
    for mark in "&!":
        for pattern in patterns:
            if pattern[0] == mark:
                named = set(_one(pattern[1:], names, local, unmatched))
                found = {host: None for host in found if (host in named) == (mark == "&")}
    return list(found), unmatched


def _local(patterns: Sequence[str], names: Names) -> str:
    """The one host that all names of this machine mean: the inventory's own, else what the patterns call it first."""
    named = (pattern.lstrip("&!") for pattern in patterns)
    return next((name for name in (*names.host_names(), *named) if name in LOCALHOST), LOCALHOST[0])


def _one(pattern: str, names: Names, local: str, unmatched: list[str]) -> list[str]:
    if not pattern:
        raise InputError("a pattern's & or ! is followed by a name")
    subscript = None if pattern.startswith("~") else _SUBSCRIPT.fullmatch(pattern)
    hosts, known = _named(subscript["name"] if subscript else pattern, names, local)
    if not known:
        unmatched.append(pattern)
    if not subscript or not hosts:
        return hosts
    last = subscript["last"]
    # As in Ansible: a range that ends with 0 is its first number alone.
    if subscript["index"] or (last and int(last) == 0):
        index = int(subscript["index"] or subscript["first"])
        if not -len(hosts) <= index < len(hosts):
            raise InputError(f"the pattern {pattern!r} goes beyond its {len(hosts)} hosts")
        return [hosts[index]]
    return hosts[int(subscript["first"]) : int(last) + 1 if last else None]


def _named(name: str, names: Names, local: str) -> tuple[list[str], bool]:
    """The hosts of the groups that `name` matches, and hosts that it matches itself; whether it matched anything."""
    regex = _regex(name)
    members = names.group_members()
    groups = [group for group in members if regex.match(group)]
    hosts = [host for group in groups for host in members[group]]
    if not groups or name.startswith("~") or any(mark in name for mark in ".?*["):
        hosts += [host for host in names.host_names() if regex.match(host)]
    if not hosts and name in LOCALHOST:
        hosts = [local]
    return list(dict.fromkeys(hosts)), bool(hosts or groups)


def _regex(name: str) -> re.Pattern[str]:
    try:
        return re.compile(name[1:] if name.startswith("~") else fnmatch.translate(name))
    except (re.error, OverflowError, RecursionError) as error:
        raise InputError(f"the pattern {name!r} is no regular expression: {error}") from None
