"""The stand-in hub of the weights' tests: models, faults, what it has served."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.nodes import ROOT, Nodes

ADDRESS = ("10.213.0.1", "808")
URL = f"http://{ADDRESS[0]}:{ADDRESS[1]}"
MODELS = "home/spark/models/hf"
MIB = 1 << 20


@dataclass(frozen=True)
class Hub:
    """A hub in the lab's network that serves what is in its folder."""

    folder: Path

    def model(self, name: str, sizes: dict[str, int]) -> dict[str, str]:
        """A model of random bytes, org/NAME; the sha256 of each file."""
        folder = self.folder / "models/org" / name
        folder.mkdir(parents=True)
        (folder / "config.json").write_text(json.dumps({"name": name}))
        for file, size in sizes.items():
            with (folder / file).open("wb") as out:
                for _ in range(size // MIB):
                    out.write(os.urandom(MIB))
        return sums(folder)

    def misbehave(self, faults: dict[str, list[str]]) -> None:
        """What happens to the next requests for files."""
        beside = self.folder / "faults.asked"
        beside.write_text(json.dumps(faults))
        beside.replace(self.folder / "faults.json")

    def served(self) -> list[tuple[str, int, int]]:
        """(file, first byte, bytes) of each request since this was last asked."""
        log = self.folder / "log"
        lines = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return [(name, first, sent) for name, first, sent in map(json.loads, lines)]


@contextmanager
def hub_in(nodes: Nodes, folder: Path) -> Iterator[Hub]:
    """A hub that is up."""
    (folder / "commit").write_text("c0ffee" * 6 + "abcd")
    argv = nodes.inside(sys.executable, str(ROOT / "tests/e2e/hub.py"), *ADDRESS, str(folder))
    server = subprocess.Popen(argv, cwd=ROOT)
    try:
        yield Hub(folder)
    finally:
        server.terminate()
        server.wait(20)


def sums(folder: Path) -> dict[str, str]:
    """The sha256 of each file of a folder; none when there is no such folder."""
    return {path.name: digest(path) for path in folder.iterdir()} if folder.is_dir() else {}


def digest(path: Path) -> str:
    seen = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(MIB):
            seen.update(piece)
    return seen.hexdigest()


def here(nodes: Nodes, node: str, model: str) -> dict[str, str]:
    """The sha256 of each file under its final name on a node."""
    return sums(nodes.root(node) / MODELS / model)


def traffic(nodes: Nodes, names: Iterable[str], device: str = "enP7s7") -> dict[str, tuple[int, int]]:
    """The bytes that each node has sent and got."""
    found = {}
    for node in names:
        lines = nodes.on(node, "cat", "/proc/net/dev").splitlines()
        fields = next(line.partition(":")[2].split() for line in lines if f"{device}:" in line)
        found[node] = int(fields[8]), int(fields[0])
    return found


def leftovers(nodes: Nodes, node: str) -> str:
    """What a transfer has left: folders beside, jobs, keys, listeners, programs; not a deploy's watch."""
    script = (
        f"ls -A /{MODELS} | grep ^[.]; ls /home/spark/.local/share/sparkops/state/jobs | grep -v ^trial-;"
        " tail -n +2 /home/spark/.ssh/authorized_keys; ss -Hltn | grep -v ':22 ' | grep -v ':8000 ';"
        " pgrep -l 'rsync|hf'; true"
    )
    return nodes.on(node, "sh", "-c", script)


def weights(nodes: Nodes, verb: str, *words: str, rc: int = 0) -> Any:
    """`sparkops weights VERB`, with this hub."""
    return nodes.sparkops("weights", verb, *words, "-e", f"hub_url={URL}", "-e", "hub_stall=3", rc=rc)
