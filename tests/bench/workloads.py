"""The workload: converged, cold, over a slow line, its memory; and our own provision, converged."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.bench import measure, peers
from tests.bench.nodes import Nodes, answering
from tests.bench.peers import LIMIT, OURS
from tests.bench.rounds import Table, rounds, show
from tests.bench.start import lab

ROUND_TRIP = 20


@dataclass(frozen=True)
class Wanted:
    """What the command line asks for: how many nodes, whose runs, how often."""

    counts: tuple[int, ...]
    peers: tuple[str, ...]
    rounds: int

    def of(self, *names: str) -> tuple[str, ...]:
        """Those of `names` that are asked for."""
        return tuple(name for name in names if name in self.peers)


def converged(nodes: Nodes, wanted: Wanted) -> dict[str, Table]:
    """Nothing has to change. Beyond 64 nodes only we and the limit."""
    found = {}
    for count in wanted.counts:
        names = wanted.peers if count <= 64 else wanted.of(OURS, LIMIT)
        commands = {name: peers.command(name, nodes, count) for name in names}
        found[f"N={count}"] = rounds(commands, wanted.rounds, nodes.base / "log", nodes.cpu, seed=count)
        show(f"converged, N={count}", found[f"N={count}"], LIMIT)
    return found


def cold(nodes: Nodes, wanted: Wanted) -> dict[str, Table]:
    """All has to be made."""
    found = {}
    for count in (count for count in wanted.counts if count <= 64):
        commands = {name: peers.command(name, nodes, count) for name in wanted.peers if name != LIMIT}
        found[f"N={count}"] = rounds(
            commands, wanted.rounds, nodes.base / "log", nodes.cpu, prepare=lambda _: nodes.wipe(), seed=count
        )
        show(f"cold, N={count}", found[f"N={count}"], OURS)
    return found


def latency(nodes: Nodes, wanted: Wanted) -> dict[str, Table]:
    """Converged, over a line with a round trip of 20 ms."""
    found = {}
    with slow_line(nodes, max(wanted.counts)) as port:
        for count in wanted.counts:
            commands = {OURS: peers.ours(nodes, count, port), LIMIT: peers.limit(nodes, count, port)}
            found[f"N={count}"] = rounds(commands, wanted.rounds, nodes.base / "log", nodes.cpu, seed=count)
            show(f"converged at {ROUND_TRIP} ms, N={count}", found[f"N={count}"], LIMIT)
    return found


@contextmanager
def slow_line(nodes: Nodes, count: int) -> Iterator[int]:
    """The port behind which the nodes are far away."""
    addresses = [node.address for node in nodes.nodes(count)]
    argv = [
        sys.executable,
        "-m",
        "tests.bench.delay",
        str(ROUND_TRIP),
        str(nodes.port + 1),
        str(nodes.port),
        *addresses,
    ]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, cwd=peers.ROOT) as proxy:
        measure.keep_children()
        try:
            answering(addresses[-1], nodes.port + 1)
            yield nodes.port + 1
        finally:
            proxy.terminate()


def memory(nodes: Nodes, wanted: Wanted) -> dict[str, dict[str, float]]:
    """MiB of PSS at the peak of a converged run's process tree."""
    found: dict[str, dict[str, float]] = {}
    for count in wanted.counts:
        names = [name for name in wanted.peers if name != LIMIT and (name == OURS or count <= 16)]
        found[f"N={count}"] = {
            name: round(measure.memory(peers.command(name, nodes, count), nodes.base / "log"), 1) for name in names
        }
        print(f"\nmemory, N={count}: " + ", ".join(f"{name} {mib} MiB" for name, mib in found[f"N={count}"].items()))
    return found


def provision(nodes: Nodes, wanted: Wanted) -> dict[str, Table]:
    """Our own playbook, converged, on the process lab's simulated nodes (whose SSH server is Python too)."""
    found = {}
    for count in (count for count in wanted.counts if count <= 16):
        with lab(nodes.base / "lab", count) as inventory:
            commands = {
                "provision": peers.sparkops("-i", str(inventory), "provision", "--all-nodes"),
                "--check": peers.sparkops("-i", str(inventory), "provision", "--all-nodes", "--check"),
                "status": peers.sparkops("-i", str(inventory), "status"),
            }
            found[f"N={count}"] = rounds(commands, wanted.rounds, nodes.base / "log", seed=count)
        show(f"provision, N={count}", found[f"N={count}"], "provision")
    return found
