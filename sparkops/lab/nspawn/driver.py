"""The nspawn driver: containers that boot Debian with systemd and sshd, on a bridge that nothing leads out of.

Everything is either a mount below DIR, a process in a namespace that is mounted there, or a cgroup named after DIR:
so `down` finds it all again without having been told, whenever `up` was killed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from shutil import copyfile
from typing import TYPE_CHECKING

import platformdirs

from sparkops.errors import LabError
from sparkops.lab.foreground import foreground
from sparkops.lab.nspawn import cgroups, files, mounts, network, processes, server
from sparkops.lab.nspawn.base import base
from sparkops.lab.nspawn.container import ENVIRONMENT, Container, forget
from sparkops.lab.nspawn.host import entering, require

if TYPE_CHECKING:
    from sparkops.lab.lab import Lab, NodeSpec


class NspawnDriver:
    """The Driver of `lab up --driver nspawn`. LabError when this machine cannot carry one: no root, say."""

    def __init__(self) -> None:
        require()

    def up(self, lab: Lab) -> None:
        """See Driver."""
        from sparkops.lab import standin
        from sparkops.lab.uv import hub_client, wheel

        folder = platformdirs.user_cache_path("sparkops") / "lab"
        shared = base(folder)
        layers = [files.models(folder), shared / "root"]
        standin.build(lab.dir, cache=folder)
        for tool in (wheel(folder), *hub_client(folder)):
            copyfile(tool, lab.dir / "wheels" / tool.name)
        for number, node in enumerate(lab.nodes):
            lab.place(node.name, network.address(number), 22)
        # From here on things are made that outlive this process: say first where they will be.
        lab.state = {"name": machine(lab), "mounts": str(lab.dir), "cgroups": [*map(str, _cgroups(lab))]}
        lab.save()
        (lab.dir / "nodes").mkdir()
        (lab.dir / "log").mkdir()
        network.make_namespace(_net(lab))
        network.make_bridge(_net(lab))
        server.start(_net(lab), lab.dir / "wheels", shared / "debs", lab.dir / "log" / "index.log")
        keys = {node.name: files.host_key(node.name) for node in lab.nodes}
        _each(lab, lambda node: _create(lab, node, layers, keys[node.name]))
        _each(lab, lambda node: container(lab, node).wait(node.address))
        lab.publish(
            {name: public for name, (_, public) in keys.items()},
            {"index_url": f"http://{network.INDEX_ADDRESS}:{network.INDEX_PORT}/simple/"},
        )

    def down(self, lab: Lab) -> None:
        """See Driver."""
        nets = [_net(lab), *(container(lab, node).net for node in lab.nodes)]
        machines = [f"--machine={machine(lab, node)}" for node in lab.nodes]
        processes.end(
            lambda: processes.inside(*nets) + [pid for word in machines for pid in processes.carrying(word)],
        )
        for node in lab.nodes:
            forget(container(lab, node))
        mounts.unmount_below(lab.dir)
        for folder in _cgroups(lab):
            cgroups.remove(folder)

    def exec(self, lab: Lab, node: str, argv: Sequence[str]) -> int:
        """See Driver."""
        return foreground(container(lab, lab.node(node)).enter([*argv]), env=ENVIRONMENT, helper=True)

    def run(self, lab: Lab, argv: Sequence[str]) -> int:
        """See Driver."""
        _running(lab)
        return foreground(entering(_net(lab), argv))

    def reboot(self, lab: Lab, node: str) -> None:
        """See Driver."""
        spec = lab.node(node)
        it = container(lab, spec)
        before = it.leader()
        it.call(["systemctl", "reboot"])
        it.wait(spec.address, not_leader=before)

    def poweroff(self, lab: Lab, node: str) -> None:
        """See Driver."""
        it = container(lab, lab.node(node))
        it.call(["systemctl", "poweroff"])
        it.wait_off()

    def cut(self, lab: Lab, node: str) -> None:
        """See Driver."""
        _running(lab)
        network.set_port(_net(lab), lab.node(node).name, "down")

    def mend(self, lab: Lab, node: str) -> None:
        """See Driver."""
        _running(lab)
        spec = lab.node(node)
        it = container(lab, spec)
        network.set_port(_net(lab), spec.name, "up")
        if it.leader() is None:
            it.wait_off()
            it.start()
        it.wait(spec.address)

    def status(self, lab: Lab) -> dict[str, str]:
        """See Driver."""
        cut = network.cut_ports(_net(lab)) if processes.is_namespace(_net(lab)) else set()
        states = {}
        for node in lab.nodes:
            state = container(lab, node).state()
            states[node.name] = "cut" if node.name in cut and state != "off" else state
        return states


def machine(lab: Lab, node: NodeSpec | None = None) -> str:
    """The name of the lab on this machine, or of a node's container."""
    return f"sparkops-{lab.id}" + (f"-{node.name.rpartition('-')[2]}" if node else "")


def container(lab: Lab, node: NodeSpec) -> Container:
    """A node's container."""
    return Container(node.name, lab.dir / "nodes" / node.name, _net(lab), machine(lab, node))


def _net(lab: Lab) -> Path:
    return lab.dir / "nodes" / "net"


def _cgroups(lab: Lab) -> list[Path]:
    return cgroups.cgroups(machine(lab))


def _running(lab: Lab) -> None:
    if not processes.is_namespace(_net(lab)):
        raise LabError(
            f"the lab in {lab.dir} is not running (a crash, or the machine was restarted)",
            hint=f"clear it away with: sparkops lab down --dir {lab.dir}",
        )


def _each(lab: Lab, work: Callable[[NodeSpec], None]) -> None:
    """Do `work` for every node, a few at a time; the first LabError goes on when all have ended."""
    with ThreadPoolExecutor(max_workers=8) as pool:
        for done in [pool.submit(work, node) for node in lab.nodes]:
            done.result()


def _create(lab: Lab, node: NodeSpec, layers: list[Path], host_key: tuple[str, str]) -> None:
    from sparkops.lab.standin import nvidia_smi

    it = container(lab, node)
    it.mount(layers)
    network.make_namespace(it.net)
    network.plug(_net(lab), it.net, node.name, node.address)
    password = lab.passwords.get(node.name)
    own = files.node_files(
        node.name,
        {other.name: other.address for other in lab.nodes},
        lab.public_key,
        host_key,
        asks=password is not None,
        environment=lab.environment,
        nvidia_smi=nvidia_smi.SCRIPT,
    )
    files.write(it.root, own)
    if password is not None:
        files.set_password(it.root, password)
    it.start()
