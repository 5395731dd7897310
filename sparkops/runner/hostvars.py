"""Magic variables: what Ansible gives every task beside the host's own."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sparkops.inventory.inventory import Inventory
    from sparkops.playbook.model import Play
    from sparkops.runner.batch import Batch
    from sparkops.runner.hoststate import HostState
    from sparkops.runner.options import Options


class HostVars(Mapping[str, Any]):
    """`hostvars`: every host's variables by its name, as they stand when they are read."""

    def __init__(self, inventory: Inventory, states: Mapping[str, HostState]) -> None:
        self._inventory = inventory
        self._states = states

    def __getitem__(self, name: str) -> Mapping[str, Any]:
        state = self._states.get(name)
        if state is not None:
            return state.own()
        if name in self._inventory.hosts:
            return self._inventory.hosts[name].vars
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._inventory.hosts)

    def __len__(self) -> int:
        return len(self._inventory.hosts)


def present(all_hosts: list[str], batch: Batch, gone: frozenset[str]) -> dict[str, Any]:
    """Those of the magic variables that get shorter while the play runs: failed hosts are not in them."""
    alive = [host for host in all_hosts if host not in gone]
    in_batch = [host for host in batch.hosts if host not in gone]
    return {"ansible_play_hosts": alive, "ansible_play_batch": in_batch, "play_hosts": alive}


def magic(play: Play, batch: Batch, all_hosts: list[str], options: Options, hostvars: HostVars) -> dict[str, Any]:
    """The variables that are the same for every host of a batch."""
    return {
        "hostvars": hostvars,
        "playbook_dir": str(Path(play.file).parent.absolute()),
        "ansible_play_name": play.name,
        "ansible_play_hosts": all_hosts,
        "ansible_play_hosts_all": all_hosts,
        "ansible_play_batch": batch.hosts,
        "play_hosts": all_hosts,
        "ansible_check_mode": options.check,
        "ansible_diff_mode": options.diff,
        "ansible_forks": options.forks,
        "ansible_verbosity": 0,
        "ansible_run_tags": sorted(options.tags) or ["all"],
        "ansible_skip_tags": sorted(options.skip_tags),
        "ansible_playbook_python": sys.executable,
    } | ({"ansible_limit": options.limit} if options.limit else {})
