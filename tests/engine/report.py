"""docs/engine.md: what the real engine did, written by the run itself."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import platformdirs

FILE = Path(__file__).parents[2] / "docs" / "engine.md"
HEAD = """\
# The real engine, end to end

Written by `make test-engine`, which serves tiny Qwen3.5-MoE checkpoints (tests/engine/mktiny.py) with vLLM {version}
itself, in a build for the CPU, on a lab node that boots Debian 12, systemd and sshd. It shows the orchestration and the
engine's own behaviour: no GPU was used, and no speed follows from it. The two columns are seconds of the last run that
had to fetch everything first, and of the last one that found the caches filled. Last run: {date}, on {cores} cores.

"""
TAIL = """
`bench` is no verb yet, so it is not in the table.
"""


class Report:
    """Cases in their order with their ends and seconds, and sizes in bytes."""

    def __init__(self) -> None:
        self.cases: list[dict[str, str | float]] = []
        self.sizes: dict[str, int] = {}
        self.cold = False

    @contextmanager
    def case(self, name: str, end: str) -> Iterator[None]:
        """A case, which is in the report once its block has ended well."""
        started = time.monotonic()
        yield
        self.cases.append({"case": name, "end": end, "seconds": round(time.monotonic() - started, 1)})

    def write(self, version: str, whole: bool) -> None:
        """Keep this run's figures in the cache folder and write the report of all that are there.

        whole: it was a run of everything, which replaces its column; a run of a part fills in its own cases.
        """
        store = platformdirs.user_cache_path("sparkops") / "engine" / "runs.json"
        known = json.loads(store.read_text()) if store.exists() else {"ends": {}, "sizes": {}, "cold": {}, "warm": {}}
        ends = {str(one["case"]): one["end"] for one in self.cases}
        seconds = {str(one["case"]): one["seconds"] for one in self.cases}
        kind = "cold" if self.cold else "warm"
        known["ends"] = ends if whole else known["ends"] | ends
        known[kind] = seconds if whole else known[kind] | seconds
        known["sizes"] |= self.sizes
        store.write_text(json.dumps(known, indent=1))
        head = HEAD.format(version=version, date=time.strftime("%Y-%m-%d"), cores=os.cpu_count())
        FILE.write_text(head + table(known["ends"], known["cold"], known["warm"]) + measures(known["sizes"]) + TAIL)


def table(ends: dict[str, str], cold: dict[str, float], warm: dict[str, float]) -> str:
    """Cases, ends (as expected: others are not in it), seconds."""
    lines = ["| case | end | cold, s | warm, s |", "| --- | --- | ---: | ---: |"]
    for name, end in ends.items():
        lines.append(
            f"| {name} | {end} | {' | '.join(f'{run[name]:g}' if name in run else '' for run in (cold, warm))} |"
        )
    sums = [f"{sum(run.get(name, 0.0) for name in ends):.0f}" if run else "" for run in (cold, warm)]
    return "\n".join([*lines, f"| all | | {' | '.join(sums)} |\n"])


def measures(sizes: dict[str, int]) -> str:
    """Sizes."""
    lines = [f"| {name} | {size / 1e9:.2f} |" for name, size in sizes.items()]
    return "\n".join(["", "| size | GB |", "| --- | ---: |", *lines, ""])
