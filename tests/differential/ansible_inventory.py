"""The worker: ansible-core's inventory over cases that come as JSON, one a line. Run as a script, never imported.

stdin:  {"sources": [absolute path or list of hosts], "cwd": folder, "patterns": [[pattern, limit or null]]}
stdout: {"list": what `ansible-inventory --list` prints, "magic": {host: {name: value}}, "graph": lines,
         "patterns": [{"hosts": [name], "ordered": whether Ansible's order is defined} | {"error": message}]}
        or {"error": message}
"""

from __future__ import annotations

import itertools
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ |= {
    "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "1",
    "ANSIBLE_DEPRECATION_WARNINGS": "0",
    "ANSIBLE_NOCOLOR": "1",
}

from ansible import context
from ansible.cli.inventory import InventoryCLI
from ansible.inventory.group import Group
from ansible.inventory.manager import InventoryManager
from ansible.module_utils.common.collections import ImmutableDict
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import init_plugin_loader
from ansible.vars.manager import VariableManager

MAGIC = ("inventory_file", "inventory_dir", "inventory_hostname_short", "group_names")
OPTIONS: dict[str, Any] = {
    "export": False, "yaml": False, "toml": False, "basedir": None, "show_vars": True, "subset": None, "verbosity": 0,
}  # fmt: skip


def load(sources: list[str]) -> InventoryCLI:
    """What the ansible-inventory program holds once it has read its sources."""
    cli: Any = InventoryCLI.__new__(InventoryCLI)
    cli.loader = DataLoader()
    # Absolute, since Ansible remembers what `.` was.
    cli.loader.set_basedir(str(Path.cwd()))
    cli.inventory = InventoryManager(cli.loader, sources=sources)
    cli.vm = VariableManager(cli.loader, cli.inventory)
    return cli


def selected(cli: Any, pattern: str, limit: str | None) -> list[str]:
    """The hosts of a pattern within a limit, as a play finds them in a process of its own."""
    cli.inventory.clear_caches()
    data = cli.inventory._inventory
    if data.localhost and data.localhost.implicit:
        data.localhost = None
    cli.inventory.subset(limit)
    return [str(host.name) for host in cli.inventory.get_hosts(pattern)]


def choose(cli: Any, pairs: list[tuple[str, str | None]]) -> list[list[str] | str]:
    """For each pattern its hosts, or why there are none."""
    found: list[list[str] | str] = []
    for pattern, limit in pairs:
        try:
            found.append(selected(cli, pattern, limit))
        except Exception as error:
            found.append(f"{type(error).__name__}: {error}")
    return found


def hash_groups(numbers: Iterator[int]) -> None:
    """Ansible walks groups as sets, so that their order is the hashes'; these come from `numbers`."""
    given: dict[int, int] = {}
    Group.__hash__ = lambda self: given.setdefault(id(self), next(numbers))


def answer(case: dict[str, Any]) -> dict[str, Any]:
    """What Ansible makes of one case."""
    os.chdir(case["cwd"])
    pairs = case.get("patterns", [])
    hash_groups(itertools.count(1 << 20, -1))
    other = choose(load(case["sources"]), pairs)
    hash_groups(itertools.count(1))
    cli: Any = load(case["sources"])
    listed = json.loads(cli.dump(cli.json_inventory(cli.inventory.groups["all"])))
    listed["_meta"].pop("profile")
    magic = {}
    for host in cli.inventory.get_hosts("all"):
        values = cli.vm.get_vars(host=host, include_hostvars=False, stage="all")
        magic[str(host.name)] = {name: values.get(name) for name in MAGIC}
    lines = cli._graph_group(cli.inventory.groups["all"])
    patterns = [
        {"error": one} if isinstance(one, str) else {"hosts": one, "ordered": one == two}
        for one, two in zip(choose(cli, pairs), other, strict=True)
    ]
    return {"list": listed, "magic": magic, "graph": lines, "patterns": patterns}


def main() -> None:
    """Answers until stdin ends."""
    context.CLIARGS = ImmutableDict(OPTIONS)
    init_plugin_loader()
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    # What Ansible itself prints is not an answer.
    os.dup2(2, 1)
    for line in sys.stdin:
        try:
            given = answer(json.loads(line))
        except Exception as error:
            given = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(given), file=out, flush=True)


if __name__ == "__main__":
    main()
