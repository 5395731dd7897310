"""What a user feels: start-up, the first line, and Ctrl-C to the prompt."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.bench import measure, peers
from tests.bench.measure import Command, Cost
from tests.bench.nodes import Nodes
from tests.bench.rounds import Runs, Table, rounds, show

CLICK = "import click"


def start(nodes: Nodes, count: int) -> dict[str, Table]:
    """--help and inventory list beside an `import click`; the first line of a run of one, and its end after Ctrl-C."""
    commands = {
        CLICK: Command([sys.executable, "-c", "import click"], {}),
        "--help": peers.sparkops("--help"),
        "inventory list": peers.sparkops("-i", str(nodes.inventory(16)), "inventory", "list"),
    }
    found = rounds(commands, max(count, 9), nodes.base / "log")
    show("start-up", found, CLICK)
    felt = Table({"first line": Runs(), "Ctrl-C to prompt": Runs()})
    for _ in range(count):
        for name, seconds in zip(felt.runs, _felt(peers.ours(nodes, 1)), strict=True):
            felt.runs[name].costs.append(Cost(seconds, 0.0, 0.0, 0.0, 0))
    show("a run of one", felt, "first line")
    return {"start-up": found, "felt": felt}


def _felt(command: Command) -> tuple[float, float]:
    """Seconds to the first line of output, and from Ctrl-C then to the end."""
    begun = time.monotonic()
    one = measure.started(command, subprocess.PIPE)
    assert one.stdout
    one.stdout.readline()
    first = time.monotonic()
    one.send_signal(signal.SIGINT)
    one.communicate()
    return first - begun, time.monotonic() - first


@contextmanager
def lab(folder: Path, count: int) -> Iterator[Path]:
    """The inventory of a process lab of so many nodes, provisioned."""
    words = ["--dir", str(folder)]
    try:
        _must(peers.sparkops("lab", "up", "--driver", "process", "--nodes", str(count), *words))
        inventory = folder / "inventory.yml"
        _must(peers.sparkops("-i", str(inventory), "provision", "--all-nodes"))
        measure.keep_children()
        yield inventory
    finally:
        _must(peers.sparkops("lab", "down", *words))


def _must(command: Command) -> None:
    one = measure.started(command, subprocess.PIPE)
    said = one.communicate()[0]
    if one.returncode:
        sys.exit(f"{' '.join(command.argv[-6:])} ended with {one.returncode}: {said.decode(errors='replace')[-2000:]}")
