"""How a node is, for what judges it: releases, who holds a port, memory, disks, driver, clock. Nothing is changed."""

from __future__ import annotations

import json
import os

from sparkops.node import listeners, served, systemd
from sparkops.node.facts import read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from sparkops.node.api import Node

# Microseconds of error from which the kernel says so itself (systemd's ntp_synced()).
UNSYNCHRONIZED = 16_000_000


def released(current: str) -> dict[str, Any]:
    """The release that `current` points to: number (None: there is none), recipe, words of the serve command."""
    try:
        number = os.readlink(current)
    except OSError:
        number = ""
    try:
        recipe = json.loads(read(os.path.join(current, "recipe.json")) or "null")
    except ValueError:
        recipe = None
    words = served.command(current)
    program = bool(words) and os.path.isfile(words[0])
    return {"number": int(number) if number.isdigit() else None, "recipe": recipe, "words": words, "program": program}


def option(words: list[str], name: str, otherwise: str) -> str:
    """The value of a flag among a command's words."""
    return words[words.index(name) + 1] if name in words[:-1] else otherwise


def lingering(scope: str) -> bool | None:
    """Whether the user's units run without a login; None where that does not matter or can't be told."""
    from sparkops.node.files import user_name

    if scope != "user" or not os.path.isdir("/var/lib/systemd/linger"):
        return None
    return os.path.exists(f"/var/lib/systemd/linger/{user_name(os.geteuid())}")


def holders(port: int, unit: str, main: int) -> list[dict[str, Any]]:
    """The listeners on the port, each with whether it is of the unit (whose main process is `main`)."""
    found = listeners.listeners(port)
    for one in found:
        pid = one["pid"]
        one["ours"] = one["unit"] == unit or (pid is not None and main > 0 and main in listeners.ancestors(pid))
    return found


def memory() -> dict[str, int]:
    """Bytes."""
    from sparkops.node.hardware import meminfo

    said = meminfo(read("/proc/meminfo"))
    return {"total": said.get("MemTotal", 0), "available": said.get("MemAvailable", 0), "free": said.get("MemFree", 0)}


def disk(name: str, path: str) -> dict[str, Any]:
    """Bytes and inodes that the login user may still use where `path` is, or would be."""
    at = path
    while not os.path.isdir(at) and at not in ("/", ""):
        at = os.path.dirname(at)
    try:
        found = os.statvfs(at or "/")
    except OSError:
        return {"name": name, "path": path, "free": None, "inodes": None}
    inodes = found.f_favail if found.f_files else None
    return {"name": name, "path": path, "free": found.f_bavail * found.f_frsize, "inodes": inodes}


def driver_version(node: Node) -> tuple[str | None, str]:
    """The driver's version and "", or None and what nvidia-smi said instead."""
    argv = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    done = node.run(argv, env={"LC_ALL": "C"}, timeout=60)
    version = done.out.strip().partition("\n")[0]
    if done.rc or not version[:1].isdigit():
        return None, (done.out + done.err).strip()[:300]
    return version, ""


def driver(node: Node) -> dict[str, Any]:
    """version (None: it does not answer), error, processes on the GPU ("PID NAME")."""
    version, error = driver_version(node)
    if version is None:
        return {"version": None, "error": error, "processes": []}
    argv = ["nvidia-smi", "--query-compute-apps=pid,process_name", "--format=csv,noheader"]
    listed = node.run(argv, env={"LC_ALL": "C"}, timeout=60)
    processes = [line.replace(",", "") for line in listed.out.splitlines() if line[:1].isdigit()]
    return {"version": version, "error": "", "processes": processes if listed.rc == 0 else []}


def clock(node: Node) -> dict[str, Any]:
    """Whether the clock is in sync and something keeps it so; None: can't be told."""
    done = node.run(["timedatectl", "show", "-p", "NTP,NTPSynchronized"], env={"LC_ALL": "C"}, timeout=10)
    said = systemd.properties(done.out) if done.rc == 0 else {}
    words = {"yes": True, "no": False}
    return {"synchronized": words.get(said.get("NTPSynchronized", "")), "ntp": words.get(said.get("NTP", ""))}


def in_sync() -> bool | None:
    """Whether the kernel holds its clock to be right, as timedatectl asks it (which starts a service that leaves
    files behind); None: can't be told.
    """
    import ctypes
    import struct

    # struct timex of 64-bit Linux, modes 0 (a question): maxerror, in microseconds, is its fourth number.
    answer = ctypes.create_string_buffer(256)
    try:
        if struct.calcsize("P") != 8 or ctypes.CDLL(None).adjtimex(answer) < 0:
            return None
    except (OSError, AttributeError):
        return None
    maxerror: int = struct.unpack_from("q", answer, 24)[0]
    return maxerror < UNSYNCHRONIZED
