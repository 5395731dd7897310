"""What was aimed at, as ratios of figures in one run: must and aim."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from tests.bench.peers import LIMIT, OURS


@dataclass(frozen=True)
class Goal:
    """A ratio of `over` to `under` in a table; `more`: it is to be large."""

    name: str
    figure: str
    table: str
    over: str
    under: str
    must: float
    aim: float
    more: bool = False
    divide: float = 1.0


GOALS = (
    Goal("converged, N=16", "converged", "N=16", OURS, LIMIT, 2.0, 1.4),
    Goal("converged, N=64", "converged", "N=64", OURS, LIMIT, 1.8, 1.2),
    Goal("converged, N=1", "converged", "N=1", OURS, LIMIT, 3.0, 2.1),
    Goal("converged, N=16: ansible / ours", "converged", "N=16", "ansible", OURS, 40, 70, True),
    Goal("converged, N=16: mitogen / ours", "converged", "N=16", "mitogen", OURS, 14, 25, True),
    Goal("converged, N=16: pyinfra / ours", "converged", "N=16", "pyinfra", OURS, 3, 4.5, True),
    Goal("cold, N=16: ansible / ours", "cold", "N=16", "ansible", OURS, 35, 60, True),
    Goal("cold, N=16: pyinfra / ours", "cold", "N=16", "pyinfra", OURS, 3.5, 6, True),
    Goal("converged at 20 ms, N=1", "latency", "N=1", OURS, LIMIT, 1.6, 1.2),
    Goal("--help / import click", "start", "start-up", "--help", "import click", 2.0, 1.3),
    Goal("1 GiB to one: paramiko put / ours", "big", "N=1", "paramiko put", OURS, 1.5, 1.85, True),
    Goal("1 GiB to one: scp / ours", "big", "N=1", "scp", OURS, 0.8, 1.0, True),
    Goal("10,000 files / rsync", "small", "N=1", OURS, "rsync", 2.0, 1.2),
    Goal("a node of 256 / of 64", "fleet", "nodes", "256", "64", 1.15, 1.0, divide=4),
)


def reached(results: Mapping[str, Any]) -> list[tuple[str, float, float, float, bool]]:
    """(name, ratio, must, aim, good enough) of every goal whose figures are there."""
    found = []
    for goal in GOALS:
        table = results.get(goal.figure, {}).get(goal.table, {})
        over, under = (table.get(name, {}).get("wall", []) for name in (goal.over, goal.under))
        if not over or not under:
            continue
        ratio = median(one / other for one, other in zip(over, under, strict=False)) / goal.divide
        good = ratio >= goal.must if goal.more else ratio <= goal.must
        found.append((goal.name, ratio, goal.must, goal.aim, good))
    return [*found, *_memory(results), *_cpu(results)]


def _memory(results: Mapping[str, Any]) -> list[tuple[str, float, float, float, bool]]:
    table = results.get("memory", {})
    few, many = (table.get(f"N={count}", {}) for count in (16, 64))
    found = []
    if few.get(OURS) and many.get(OURS):
        ratio = many[OURS] / few[OURS]
        found.append(("peak PSS, N=64 / N=16", ratio, 1.3, 1.1, ratio <= 1.3))
    if few.get(OURS) and few.get("ansible"):
        ratio = few[OURS] / few["ansible"]
        found.append(("peak PSS, N=16: ours / ansible's", ratio, 0.25, 0.11, ratio <= 0.25))
    return found


def _cpu(results: Mapping[str, Any]) -> list[tuple[str, float, float, float, bool]]:
    """Of the controller, for one host more."""
    tables = [results.get("converged", {}).get(f"N={count}", {}) for count in (16, 64)]
    if any(not table.get(peer, {}).get("cpu") for table in tables for peer in (OURS, LIMIT)):
        return []
    ours, limit = (median(tables[1][peer]["cpu"]) - median(tables[0][peer]["cpu"]) for peer in (OURS, LIMIT))
    return [("controller's CPU a host more / ssh's", ours / limit, 1.0, 0.65, ours <= limit)]
