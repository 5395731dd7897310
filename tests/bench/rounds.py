"""Peers measured in turns, so that a busy moment meets all of them alike, and ratios of the same round."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from tests.bench.measure import Command, Cost, measure

# Seconds that one peer may use in one table; after these it sits out the rounds that are left.
PATIENCE = 240.0
# The share of the machine that others may use before a figure is called noisy.
QUIET = 0.15


@dataclass
class Runs:
    """What one peer's runs cost."""

    costs: list[Cost] = field(default_factory=list)

    def of(self, name: str) -> list[float]:
        return [getattr(cost, name) for cost in self.costs]

    def document(self) -> dict[str, Any]:
        names = ("wall", "cpu", "rss", "others")
        return {name: [round(value, 4) for value in self.of(name)] for name in names}


@dataclass
class Table:
    """Runs of several peers, by name."""

    runs: dict[str, Runs] = field(default_factory=dict)

    def ratio(self, over: str, under: str, what: str = "wall") -> tuple[float, float, float] | None:
        """Least, median and greatest of a peer's cost over another's in the same round; None when one is not there."""
        if over not in self.runs or under not in self.runs:
            return None
        pairs = zip(self.runs[over].of(what), self.runs[under].of(what), strict=False)
        found = sorted(one / other for one, other in pairs if other)
        return (found[0], median(found), found[-1]) if found else None

    def quiet(self) -> bool:
        """Whether others left the machine to us."""
        shares = [share for runs in self.runs.values() for share in runs.of("others")]
        return bool(shares) and median(shares) <= QUIET

    def document(self) -> dict[str, Any]:
        return {name: runs.document() for name, runs in self.runs.items()}


Prepare = Callable[[str], None]


def rounds(
    commands: Mapping[str, Command],
    count: int,
    log: Path,
    nodes_cpu: Callable[[], float] = float,
    prepare: Prepare | None = None,
    seed: int = 0,
) -> Table:
    """`count` rounds, each peer once in each, after one run of each that does not count. prepare: before each run.

    Ends the program when a command fails.
    """
    table = Table({name: Runs() for name in commands})
    used = dict.fromkeys(commands, 0.0)
    for number in range(count + 1):
        order = list(commands)
        random.Random(seed + number).shuffle(order)
        for name in order:
            if used[name] > PATIENCE:
                continue
            if prepare is not None:
                prepare(name)
            start = time.monotonic()
            cost = measure(commands[name], log, nodes_cpu)
            used[name] += time.monotonic() - start
            if cost.rc:
                sys.exit(f"{name} ended with {cost.rc}; its last words:\n{log.read_text(errors='replace')[-2000:]}")
            # A slow one's first run counts: its starting up is nothing beside it.
            if number or cost.wall > PATIENCE / count:
                table.runs[name].costs.append(cost)
    return table


def show(title: str, table: Table, under: str) -> None:
    """The table for people."""
    print(f"\n{title}{'' if table.quiet() else '  (noisy: others used the machine)'}")
    print(f"  {'':14}{'wall s':>9}{'min':>9}{'max':>9}{'cpu s':>9}{'runs':>6}   over {under}: min / median / max")
    for name, runs in table.runs.items():
        walls, cpus = runs.of("wall"), runs.of("cpu")
        if not walls:
            continue
        found = table.ratio(name, under)
        ratio = "" if found is None else "   " + " / ".join(f"{value:.2f}" for value in found)
        print(
            f"  {name:14}{median(walls):9.3f}{min(walls):9.3f}{max(walls):9.3f}{median(cpus):9.3f}{len(walls):6}{ratio}"
        )
