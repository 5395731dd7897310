"""A lab's network: a namespace with a bridge, and a cable from it to a namespace of each node's own.

All labs use the same addresses; they never meet. Namespaces are kept by mounts below the lab's folder.
"""

from __future__ import annotations

import ctypes
import json
import socket
import threading
from pathlib import Path

from sparkops.lab.nspawn.host import call, entering

BRIDGE = "br0"
# What a Spark calls its management interface.
INTERFACE = "enP7s7"
INDEX_ADDRESS = "10.213.0.1"
INDEX_PORT = 8000
CLONE_NEWNET = 0x40000000


def address(number: int) -> str:
    """The address of node `number`, counted from 0 (up to 60,000)."""
    return f"10.213.{1 + number // 250}.{1 + number % 250}"


def make_namespace(path: Path) -> None:
    """A network namespace that lasts as long as the mount on `path`. LabError."""
    path.touch()
    call("unshare", f"--net={path}", "true")
    call(*entering(path, ["ip", "link", "set", "lo", "up"]))


def make_bridge(netns: Path) -> None:
    """The lab's bridge, with the index server's address. LabError."""
    _batch(
        netns, f"link add {BRIDGE} type bridge", f"addr add {INDEX_ADDRESS}/16 dev {BRIDGE}", f"link set {BRIDGE} up"
    )


def plug(lab: Path, node: Path, port: str, address: str) -> None:
    """A cable from port `port` of the bridge in `lab` to the namespace `node`, which gets `address`. LabError."""
    cable = ["type", "veth", "peer", "name", INTERFACE, "netns", str(node)]
    call(*entering(lab, ["ip", "link", "add", port, *cable]))
    _batch(lab, f"link set {port} master {BRIDGE} up")
    _batch(node, f"addr add {address}/16 dev {INTERFACE}", f"link set {INTERFACE} up")


def set_port(netns: Path, port: str, state: str) -> None:
    """Pull (`down`) or put back (`up`) the cable at a port of the bridge. LabError."""
    _batch(netns, f"link set {port} {state}")


def cut_ports(netns: Path) -> set[str]:
    """The ports of the bridge whose cable is pulled. LabError."""
    links = json.loads(call(*entering(netns, ["ip", "-json", "link", "show", "master", BRIDGE])))
    return {link["ifname"] for link in links if "UP" not in link["flags"]}


def _batch(netns: Path, *commands: str) -> None:
    call(*entering(netns, ["ip", "-batch", "-"]), stdin="".join(f"{command}\n" for command in commands))


def banner(netns: Path, address: str, port: int, timeout: float = 1.0) -> bytes | None:
    """What a server in that namespace says first, b"" when it waits to be asked; None when nothing answers."""
    answers: list[bytes] = []

    def connect() -> None:
        try:
            # The namespace belongs to the thread, which ends with this function.
            with netns.open() as file:
                if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), CLONE_NEWNET):
                    raise OSError(ctypes.get_errno(), "setns")
            with socket.create_connection((address, port), timeout) as connection:
                answers.append(b"")
                answers.append(connection.recv(256))
        except OSError:
            return

    thread = threading.Thread(target=connect)
    thread.start()
    thread.join()
    return answers[-1] if answers else None
