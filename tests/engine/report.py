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

    def write(self, version: str) -> None:
        """Keep this run in the cache folder, beside the last one of the other kind; write the report of both."""
        store = platformdirs.user_cache_path("sparkops") / "engine" / "runs.json"
        runs = json.loads(store.read_text()) if store.exists() else {}
        runs["cold" if self.cold else "warm"] = {str(one["case"]): one["seconds"] for one in self.cases}
        store.write_text(json.dumps(runs, indent=1))
        head = HEAD.format(version=version, date=time.strftime("%Y-%m-%d"), cores=os.cpu_count())
        FILE.write_text(head + self.table(runs.get("cold", {}), runs.get("warm", {})) + self.measures() + TAIL)

    def table(self, cold: dict[str, float], warm: dict[str, float]) -> str:
        """Cases, expected ends (they came), seconds."""
        lines = ["| case | end | cold, s | warm, s |", "| --- | --- | ---: | ---: |"]
        for one in self.cases:
            seconds = [f"{run[name]:g}" if (name := str(one["case"])) in run else "" for run in (cold, warm)]
            lines.append(f"| {one['case']} | {one['end']} | {' | '.join(seconds)} |")
        sums = [f"{sum(run.values()):.0f}" if run else "" for run in (cold, warm)]
        return "\n".join([*lines, f"| all | | {' | '.join(sums)} |\n"])

    def measures(self) -> str:
        """Sizes."""
        lines = [f"| {name} | {size / 1e9:.2f} |" for name, size in self.sizes.items()]
        return "\n".join(["", "| size | GB |", "| --- | ---: |", *lines, ""])
