#!/usr/bin/env python3
"""Stand-in for nvidia-smi in a sparkops lab: answers as a DGX Spark's GB10 does, driver version as the lab says.

The version is read at each call from $SPARKOPS_LAB_ETC/driver or /etc/sparkops-lab/driver; an empty file is a driver
that does not answer. Standard library only, Python >= 3.8.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

DRIVER = "580.95.05"
UUID = "GPU-5a17c0de-0000-4000-8000-000000000010"
NOT_AVAILABLE = "[N/A]"
# CUDA that a driver of a major version brings: what the table's corner shows.
CUDA = ((580, "13.0"), (575, "12.9"), (570, "12.8"), (565, "12.7"), (560, "12.6"), (555, "12.5"), (550, "12.4"))
OLDEST_CUDA = "12.2"
NO_DRIVER = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. "
    "Make sure that the latest NVIDIA driver is installed and running."
)
UNITS = {"power.": "W", "clocks.": "MHz", "memory.": "MiB", "utilization.": "%", "fan.": "%"}
TABLE = """\
{time}
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI {driver:<18} Driver Version: {driver:<18} CUDA Version: {cuda:<9}|
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|=========================================+========================+======================|
|   0  NVIDIA GB10                    On  |   0000000F:01:00.0 Off |                  N/A |
| N/A   42C    P8             16W /  N/A  | Not Supported          |      0%      Default |
+-----------------------------------------+------------------------+----------------------+

+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|  No running processes found                                                             |
+-----------------------------------------------------------------------------------------+
"""


def main() -> int:
    """Answer; the status is nvidia-smi's: 2 for a wrong question, 9 when the driver does not answer."""
    args = arguments()
    driver = driver_version()
    if not driver:
        print(NO_DRIVER)
        return 9
    if args.list_gpus:
        print(f"GPU 0: NVIDIA GB10 (UUID: {UUID})")
    elif args.query_gpu is None:
        print(
            TABLE.format(time=time.strftime("%a %b %d %H:%M:%S %Y"), driver=driver, cuda=cuda_version(driver)), end=""
        )
    else:
        return query(args.query_gpu.split(","), (args.format or "").split(","), driver)
    return 0


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="nvidia-smi", allow_abbrev=False)
    parser.add_argument("-L", "--list-gpus", action="store_true")
    parser.add_argument("-i", "--id")
    parser.add_argument("--query-gpu")
    parser.add_argument("--format")
    return parser.parse_args()


def driver_version() -> str:
    """The version that the lab gave this node; "" for a driver that does not answer."""
    folder = Path(os.environ.get("SPARKOPS_LAB_ETC", "/etc/sparkops-lab"))
    try:
        return (folder / "driver").read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return DRIVER


def cuda_version(driver: str) -> str:
    """The CUDA version that a driver brings."""
    major = int(driver.split(".")[0])
    return next((cuda for since, cuda in CUDA if major >= since), OLDEST_CUDA)


def fields(driver: str) -> dict[str, str]:
    """What can be queried."""
    known = {
        "timestamp": time.strftime("%Y/%m/%d %H:%M:%S.000"),
        "driver_version": driver,
        "count": "1",
        "index": "0",
        "name": "NVIDIA GB10",
        "gpu_name": "NVIDIA GB10",
        "uuid": UUID,
        "gpu_uuid": UUID,
        "serial": NOT_AVAILABLE,
        "vbios_version": "9A.0B.00.00.00",
        "pci.bus_id": "0000000F:01:00.0",
        "gpu_bus_id": "0000000F:01:00.0",
        "compute_cap": "12.1",
        "pstate": "P8",
        "persistence_mode": "Enabled",
        "compute_mode": "Default",
        "display_active": "Disabled",
        "power.draw": "16.00 W",
        "power.draw.instant": "16.00 W",
        "power.draw.average": "16.00 W",
        "power.limit": NOT_AVAILABLE,
        "clocks.sm": "2405 MHz",
        "clocks.current.sm": "2405 MHz",
        "clocks.gr": "2405 MHz",
        "clocks.current.graphics": "2405 MHz",
        "clocks.max.sm": "3003 MHz",
        "utilization.gpu": "0 %",
        "temperature.gpu": "42",
    }
    absent = (
        *("clocks.mem", "clocks.current.memory", "fan.speed", "utilization.memory", "temperature.memory"),
        *("memory.total", "memory.used", "memory.free", "memory.reserved"),
        *("ecc.mode.current", "mig.mode.current", "enforced.power.limit"),
    )
    return {**known, **dict.fromkeys(absent, NOT_AVAILABLE)}


def query(names: list[str], form: list[str], driver: str) -> int:
    """One line of CSV, after a line of names unless `noheader`."""
    names = [name.strip() for name in names]
    form = [word.strip() for word in form]
    known = fields(driver)
    for name in names:
        if name not in known:
            print(f'Field "{name}" is not a valid field to query.\n')
            return 2
    if "csv" not in form:
        print("--format= must be specified with csv when --query-gpu is used.")
        return 2
    plain = "nounits" in form
    values = [without_unit(known[name]) if plain else known[name] for name in names]
    if "noheader" not in form:
        print(", ".join(name + unit(name) for name in names))
    print(", ".join(values))
    return 0


def unit(name: str) -> str:
    """What a field's heading says of its unit."""
    return next((f" [{unit}]" for kind, unit in UNITS.items() if name.startswith(kind)), "")


def without_unit(value: str) -> str:
    """A figure by itself."""
    number, _, last = value.rpartition(" ")
    return number if last in UNITS.values() else value


if __name__ == "__main__":
    sys.exit(main())
