"""Draws docs/bench/converged.svg from docs/bench/results.json; needs the extra [plot]."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import median
from typing import Any


def draw(results: dict[str, Any], file: Path) -> bool:
    """Wall seconds of a converged run by number of nodes, a line a peer. False where there is no matplotlib."""
    try:
        from matplotlib import pyplot
    except ImportError:
        print("no plot: pip install 'sparkops[plot]'")
        return False
    tables = sorted((int(name[2:]), table) for name, table in results.get("converged", {}).items())
    figure, axes = pyplot.subplots(figsize=(7, 4.5))
    for peer in dict.fromkeys(peer for _, table in tables for peer in table):
        points = [(count, median(table[peer]["wall"])) for count, table in tables if table.get(peer, {}).get("wall")]
        axes.plot([count for count, _ in points], [wall for _, wall in points], marker="o", label=peer)
    axes.set(xscale="log", yscale="log", xlabel="nodes", ylabel="seconds (median)")
    axes.set_title("Twelve steps and facts, nothing to change")
    axes.set_xticks([count for count, _ in tables], [str(count) for count, _ in tables])
    axes.grid(alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(file)
    return True


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    draw(json.loads((folder / "results.json").read_text()), folder / "converged.svg")
