"""Who listens on a TCP port: read from /proc/net, so that no program is needed (ss and lsof may be absent).

vLLM binds with SO_REUSEPORT: two servers can share a port in silence, and each is listed.
"""

from __future__ import annotations

import os

from sparkops.node.facts import read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LISTEN = "0A"  # include/net/tcp_states.h
COMMAND_LENGTH = 200


def listeners(port: int, proc: str = "/proc") -> list[dict[str, Any]]:
    """[{"address", "pid", "command", "unit"}] of the port's listeners.

    pid is None, command and unit "", where this user may not look into the process. unit: "" for one of no unit.
    """
    sockets: dict[str, str] = {}
    for table in ("tcp", "tcp6"):
        sockets.update(listening(read(f"{proc}/net/{table}"), port))
    owners = holders(set(sockets), proc) if sockets else {}
    found: list[dict[str, Any]] = []
    for inode, address in sockets.items():
        for pid in sorted(owners.get(inode, ())):
            command = read(f"{proc}/{pid}/cmdline").replace("\0", " ").strip()[:COMMAND_LENGTH]
            unit = unit_of(read(f"{proc}/{pid}/cgroup"))
            found.append({"address": address, "pid": pid, "command": command, "unit": unit})
        if inode not in owners:
            found.append({"address": address, "pid": None, "command": "", "unit": ""})
    return found


def listening(table: str, port: int) -> dict[str, str]:
    """inode -> address of the sockets that listen on a port, from the text of /proc/net/tcp or tcp6."""
    found = {}
    for line in table.splitlines()[1:]:
        words = line.split()
        if len(words) > 9 and words[3] == LISTEN:
            address, _, at = words[1].partition(":")
            if int(at, 16) == port:
                found[words[9]] = plain(address)
    return found


def plain(address: str) -> str:
    """An address of /proc/net/tcp (32-bit words in the machine's byte order) as people write it."""
    import _socket
    import sys

    raw = bytes.fromhex(address)
    if sys.byteorder == "little":
        raw = b"".join(raw[at : at + 4][::-1] for at in range(0, len(raw), 4))
    return _socket.inet_ntop(_socket.AF_INET if len(raw) == 4 else _socket.AF_INET6, raw)


def holders(inodes: set[str], proc: str = "/proc") -> dict[str, set[int]]:
    """inode -> pids of the processes that hold the socket; those of other users are seen by root alone."""
    found: dict[str, set[int]] = {}
    for name in os.listdir(proc):
        if not name.isdigit():
            continue
        try:
            descriptors = os.listdir(f"{proc}/{name}/fd")
        except OSError:
            continue
        for descriptor in descriptors:
            try:
                target = os.readlink(f"{proc}/{name}/fd/{descriptor}")
            except OSError:
                continue
            inode = target[8:-1] if target.startswith("socket:[") else ""
            if inode in inodes:
                found.setdefault(inode, set()).add(int(name))
    return found


def unit_of(cgroup: str) -> str:
    """The systemd unit of a process, from the text of /proc/PID/cgroup; "" when it belongs to none."""
    for line in cgroup.splitlines():
        for part in reversed(line.rpartition(":")[2].split("/")):
            if part.endswith((".service", ".scope")):
                return part
    return ""


def ancestors(pid: int, proc: str = "/proc") -> list[int]:
    """A process, its parent, and so on up."""
    found: list[int] = []
    while pid > 0 and pid not in found:
        found.append(pid)
        # pid (comm) state ppid: comm may hold anything, so look behind its last bracket.
        words = read(f"{proc}/{pid}/stat").rpartition(")")[2].split()
        pid = int(words[1]) if len(words) > 1 else 0
    return found
