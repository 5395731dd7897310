#!/usr/bin/env python3
"""A look at a machine with a real GPU, by hand: the node's program against the real driver, nvidia-smi and torch.

    python3 tests/gpu/smoke.py [--python PYTHON] [--save FOLDER]

Needs this checkout and Python 3.8, nothing else: no package, no network, no root. Changes nothing on the machine.
The tasks go through the executor over a pipe, as they do with `ansible_connection: local`. PYTHON is the interpreter
whose torch is looked at (this one). FOLDER takes what the machine said: such files are the fixtures in tests/gpu/said.

Ends with 0 when all is well, 1 when something is not, 77 where there is no GPU to look at.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from sparkops.node import bundle, venv
from sparkops.node.api import Failure
from sparkops.node.frames import Link

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NO_GPU = 77
PROC = Path("/proc/driver/nvidia/version")
# What the product asks, and what tells machines apart.
QUESTIONS = {
    "driver": "--query-gpu=driver_version --format=csv,noheader",
    "status": "--query-gpu=driver_version,power.draw,temperature.gpu --format=csv,noheader,nounits",
    "about": "--query-gpu=name,driver_version,compute_cap,power.draw,clocks.sm,memory.total,memory.used,"
    "temperature.gpu,fan.speed --format=csv,noheader",
    "apps": "--query-compute-apps=pid,process_name --format=csv,noheader",
    "unknown": "--query-gpu=name,foo --format=csv,noheader",
    "table": "",
}
TORCH = """
import importlib.metadata, json, os, torch
seen = torch.cuda.is_available()
print(json.dumps({
    "file": os.path.join(os.path.dirname(torch.__file__), "version.py"), "version": torch.__version__,
    "distribution": importlib.metadata.version("torch"), "cuda": torch.version.cuda, "available": seen,
    "capability": list(torch.cuda.get_device_capability()) if seen else None,
}))
"""


class Smoke:
    """Counts what was well, and keeps what the machine said."""

    def __init__(self, save: Path | None) -> None:
        self.save = save
        self.bad = 0

    def keep(self, name: str, text: str) -> str:
        """Keep what the machine said as a file."""
        if self.save:
            (self.save / name).write_text(text, encoding="utf-8")
        return text

    def see(self, what: str, holds: bool, found: Any) -> None:
        """Say how one look ended."""
        self.bad += not holds
        print(f"{'ok    ' if holds else 'WRONG '} {what}: {found}", flush=True)


def tasks(wanted: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Run tasks on this machine through an executor of their own; each answer has state, msg, result."""
    with tempfile.TemporaryDirectory() as state:
        child = subprocess.Popen(bundle.argv(sys.executable), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert child.stdin and child.stdout
        link = Link(child.stdout.fileno(), child.stdin.fileno())
        link.write(bundle.preamble(task["module"] for task in wanted))
        link.send({"op": "open", "state_dir": state, "check": False})
        link.send({"op": "window", "tasks": [dict(task, go_on=True) for task in wanted]})
        answers = []
        while (message := link.receive()[0])["ev"] != "done":
            if message["ev"] == "result":
                answers.append(message)
        link.send({"op": "close"})
        child.communicate()
        return answers


def driver(smoke: Smoke) -> str:
    """The driver as nvidia-smi, the kernel and the module have it; returns its version."""
    said = {}
    for name, words in QUESTIONS.items():
        done = subprocess.run(["nvidia-smi", *words.split()], capture_output=True, text=True)
        said[name] = smoke.keep(f"nvidia-smi-{name}.txt", f"{done.stdout}{done.stderr}exit {done.returncode}\n")
    versions = [line.strip() for line in said["driver"].splitlines()[:-1]]
    oldest = min(versions, key=lambda version: [int(part) for part in version.split(".")])
    kernel = ""
    if PROC.exists():
        kernel = smoke.keep("proc-driver-nvidia-version.txt", PROC.read_text(encoding="utf-8"))
    unknown = 'Field "foo" is not a valid field to query.' in said["unknown"] and said["unknown"].endswith("exit 2\n")
    smoke.see("nvidia-smi on a field that it does not know", unknown, said["unknown"].strip().replace("\n", " | "))
    new, old, by_kernel = tasks(
        [
            {"module": "nvidia_driver", "args": {"minimum": "580"}},
            {"module": "nvidia_driver", "args": {"minimum": "9999"}},
            {"module": "nvidia_driver", "args": {"minimum": "580"}, "env": {"PATH": "/nonexistent"}},
        ]
    )
    expected = {"driver_version": oldest, "gpus": len(versions)}
    smoke.see("nvidia_driver, 580 or newer", (new["state"], new["result"]) == ("ok", expected), new["msg"])
    smoke.see(
        "nvidia_driver, 9999 is too new", "older than 9999" in old["msg"] and old["state"] == "failed", old["msg"]
    )
    if kernel:
        right = by_kernel["result"].get("driver_version") == oldest
        smoke.see("nvidia_driver by the kernel alone", right, by_kernel["msg"])
    return oldest


def visible_mib() -> int:
    """Memory as the C library counts it; a virtual machine's may grow while it runs."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20


def facts(smoke: Smoke, version: str) -> None:
    """Facts, status and evidence: what must agree with other sources."""
    before = visible_mib()
    nowhere = {"home": "/nonexistent/sparkops", "service": "smoke"}
    found, status, evidence = tasks(
        [
            {"module": "setup", "args": {}},
            {"module": "serving_status", "args": nowhere},
            {"module": "serving_evidence", "args": {**nowhere, "models_dir": "/nonexistent", "port": 9}},
        ]
    )
    facts = found["result"].get("ansible_facts", {})
    names = ("architecture", "distribution", "distribution_version", "kernel", "python_version", "memtotal_mb")
    told = {name: facts.get(f"ansible_{name}") for name in (*names, "service_mgr")}
    right = (told["architecture"], told["kernel"]) == (platform.machine(), platform.release())
    right = right and told["python_version"] == platform.python_version()
    smoke.see("facts", right and before - 64 < (told["memtotal_mb"] or 0) < visible_mib() + 64, json.dumps(told))
    result = status["result"]
    gpu = {name: result.get(name) for name in ("driver", "power_w", "temperature_c")}
    right = gpu["driver"] == version and all(value is None or value > 0 for value in list(gpu.values())[1:])
    smoke.see("serving_status' GPU", status["state"] == "ok" and right, json.dumps(gpu) if gpu else status["msg"])
    seen = evidence["result"].get("driver", {})
    smoke.see("serving_evidence's driver", seen.get("version") == version, json.dumps(seen or evidence["msg"]))


def torch(smoke: Smoke, python: str) -> None:
    """What python_venv's expect_cuda reads, against what torch itself says."""
    done = subprocess.run([python, "-c", TORCH], capture_output=True, text=True)
    if done.returncode:
        print(f"skipped torch: {python} has none that can be imported: {(done.stderr.splitlines() or ['?'])[-1]}")
        return
    said = json.loads(done.stdout.splitlines()[-1])
    file = Path(said["file"])
    smoke.keep("torch-version.py.txt", file.read_text(encoding="utf-8"))
    smoke.keep("torch.json", json.dumps({**said, "file": "version.py"}, indent=2) + "\n")
    read = venv.torch_cuda(str(file))
    about = (
        f"torch {said['version']}, distribution {said['distribution']}, GPU {said['available']}, {said['capability']}"
    )
    smoke.see("torch/version.py read without running it", read == said["cuda"], f"{read} ({about})")
    for wanted, fits in ((said["cuda"], True), ("12.8" if said["cuda"] != "12.8" else "12.9", False)):
        try:
            venv.check_cuda(str(file.parents[1]), wanted, "a lock")
            smoke.see(f"expect_cuda: {wanted}", fits, "fits")
        except Failure as failure:
            smoke.see(f"expect_cuda: {wanted}", not fits, failure.msg)


def main() -> int:
    """Look; the status is the module's word."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--save", metavar="FOLDER", type=Path)
    given = parser.parse_args()
    asked = shutil.which("nvidia-smi") and subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True)
    if not asked or asked.returncode:
        print(f"skipped: no GPU here: {asked.stdout.strip() if asked else 'there is no nvidia-smi'}")
        return NO_GPU
    if given.save:
        given.save.mkdir(parents=True, exist_ok=True)
    smoke = Smoke(given.save)
    facts(smoke, driver(smoke))
    torch(smoke, given.python)
    print(f"{smoke.bad} wrong" if smoke.bad else "all is well")
    return 1 if smoke.bad else 0


if __name__ == "__main__":
    sys.exit(main())
