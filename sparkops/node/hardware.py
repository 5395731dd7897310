"""Hardware facts: processors, memory, the box's make, uptime."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def facts(read: Callable[[str], str]) -> dict[str, Any]:
    """The hardware facts; `read` gives a file's text or ""."""
    return {
        **memory(read("/proc/meminfo")),
        **processors(read("/proc/cpuinfo")),
        "processor_nproc": len(os.sched_getaffinity(0)),
        "uptime_seconds": int(float((read("/proc/uptime") or "0").split()[0])),
        "system_vendor": read("/sys/class/dmi/id/sys_vendor").strip() or "NA",
        "product_name": read("/sys/class/dmi/id/product_name").strip() or "NA",
        "bios_version": read("/sys/class/dmi/id/bios_version").strip() or "NA",
    }


def meminfo(text: str) -> dict[str, int]:
    """/proc/meminfo in bytes."""
    pairs = (line.split() for line in text.splitlines() if line.endswith(" kB"))
    return {words[0].rstrip(":"): int(words[1]) * 1024 for words in pairs}


def memory(text: str) -> dict[str, Any]:
    """Memory and swap in MiB, from /proc/meminfo's text."""
    mib = {name: size >> 20 for name, size in meminfo(text).items()}
    total, free = mib.get("MemTotal", 0), mib.get("MemFree", 0)
    swap, swap_free, swap_cached = (mib.get(name, 0) for name in ("SwapTotal", "SwapFree", "SwapCached"))
    nocache = free + mib.get("Cached", 0) + mib.get("Buffers", 0)
    return {
        "memtotal_mb": total,
        "memfree_mb": free,
        "swaptotal_mb": swap,
        "swapfree_mb": swap_free,
        "memory_mb": {
            "real": {"total": total, "used": total - free, "free": free},
            "nocache": {"free": nocache, "used": total - nocache},
            "swap": {"total": swap, "free": swap_free, "used": swap - swap_free, "cached": swap_cached},
        },
    }


def processors(text: str) -> dict[str, Any]:
    """Counts from /proc/cpuinfo's text; where it names no sockets (ARM) each processor is one, as in Ansible."""
    listed: list[str] = []
    threads = 0
    cores: dict[str, set[str]] = {}
    socket = ""
    for line in text.splitlines():
        key, _, value = (part.strip() for part in line.partition(":"))
        if key == "processor":
            threads += 1
            listed.append(value)
        elif key in ("vendor_id", "model name"):
            listed.append(value)
        elif key == "physical id":
            socket = value
        elif key == "core id":
            cores.setdefault(socket, set()).add(value)
    sockets = len(cores) or threads
    per_socket = max(map(len, cores.values())) if cores else 1
    per_core = max(1, threads // (sockets * per_socket)) if threads else 1
    return {
        "processor": listed,
        "processor_count": sockets,
        "processor_cores": per_socket,
        "processor_threads_per_core": per_core,
        "processor_vcpus": sockets * per_socket * per_core,
    }
