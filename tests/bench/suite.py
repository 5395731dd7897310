"""`make bench`: measures us, the limit and our peers in turns. suite.py [WHAT], words with commas between:

figures (all when none is named): converged cold latency memory provision start big small fleet compiling
N=1+16 (numbers of nodes)   peers=sparkops+pyinfra   rounds=3

Real sshd on 127.0.1.0/24, so Linux; peers are installed into venvs under ~/.cache/sparkops/bench. Results are added to
docs/bench/results.json. Never a test: how fast a machine is depends on who else uses it.
"""

from __future__ import annotations

import json
import platform
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

from tests.bench import copies, goals, measure, plot, scale, start, workloads
from tests.bench.nodes import Nodes
from tests.bench.peers import ALL, ROOT
from tests.bench.venvs import PEERS, versions
from tests.bench.workloads import Wanted

OUT = ROOT / "docs/bench"
COUNTS = (1, 4, 16, 64, 128)
ROUNDS = 5
# How many nodes a figure is about when none is named.
DEFAULTS = {"cold": (1, 16), "latency": (1, 16), "memory": (16, 64), "provision": (1, 16)}
FIGURES: dict[str, Callable[[Nodes, Wanted], Mapping[str, Any]]] = {
    "start": lambda nodes, wanted: start.start(nodes, wanted.rounds),
    "converged": workloads.converged,
    "latency": workloads.latency,
    "cold": workloads.cold,
    "memory": workloads.memory,
    "provision": workloads.provision,
    "big": lambda nodes, wanted: copies.big(nodes, wanted.rounds),
    "small": lambda nodes, wanted: copies.small(nodes, wanted.rounds),
    "fleet": lambda nodes, wanted: scale.fleet(nodes, wanted.rounds),
    "compiling": lambda nodes, wanted: scale.compiling(nodes, wanted.rounds),
}


def parse(what: str) -> tuple[list[str], tuple[int, ...] | None, tuple[str, ...], int]:
    """(figures, numbers of nodes or None, peers, rounds). Ends the program for a word that is none."""
    figures: list[str] = []
    counts: tuple[int, ...] | None = None
    peers: tuple[str, ...] = ALL
    rounds = ROUNDS
    for word in filter(None, what.split(",")):
        name, _, value = word.partition("=")
        if name in FIGURES and not value:
            figures.append(name)
        elif name == "N":
            counts = tuple(int(one) for one in value.split("+"))
        elif name == "rounds":
            rounds = int(value)
        elif name == "peers" and set(value.split("+")) <= set(ALL):
            peers = tuple(value.split("+"))
        else:
            sys.exit(f"{word!r} is no word of WHAT.\n\n{__doc__}")
    return figures or list(FIGURES), counts, peers, rounds


def main(what: str = "") -> None:
    figures, counts, peers, rounds = parse(what)
    measure.adopt_strays()
    base = user_cache_path("sparkops") / "bench"
    base.mkdir(parents=True, exist_ok=True)
    file = OUT / "results.json"
    results = json.loads(file.read_text()) if file.exists() else {}
    most = max(max(counts or COUNTS), 16)
    with Nodes(base, most) as nodes:
        measure.keep_children()
        for figure in figures:
            about = counts if counts is not None else DEFAULTS.get(figure, COUNTS)
            wanted = Wanted(about, peers, rounds)
            found = FIGURES[figure](nodes, wanted)
            kept = results.setdefault(figure, {})
            for name, table in found.items():
                kept[name] = table if isinstance(table, dict) else table.document()
            results["about"] = {**results.get("about", {}), figure: _about(base, peers)}
            OUT.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(results, indent=1) + "\n")
    tell(results)
    plot.draw(results, OUT / "converged.svg")


def tell(results: Mapping[str, Any]) -> None:
    """The goals and what was reached of them."""
    print(f"\n{'':44}{'reached':>9}{'must':>8}{'aim':>8}")
    for name, ratio, must, aim, good in goals.reached(results):
        print(f"  {name:42}{ratio:9.2f}{must:8g}{aim:8g}{'' if good else '   missed'}")


def _about(base: Path, peers: tuple[str, ...]) -> dict[str, Any]:
    there = [peer for peer in peers if peer in PEERS and (base / "venvs" / peer).exists()]
    return {
        "when": time.strftime("%Y-%m-%d"),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "peers": {peer: versions(peer, base) for peer in there},
    }


if __name__ == "__main__":
    main(*sys.argv[1:2])
