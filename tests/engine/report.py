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
## What was learned from it

Each of these is now in the product, in the lab's stand-in engine, or in both.

- When the engine's process does not start, some 120 lines of tracebacks follow the line that says why. A failed deploy
  looks for the cause in the last 300 lines, and its message leaves the insides of tracebacks out.
- The engine's own code is linked with libraries that a small Debian lacks (libnuma), which it only mentions in a
  warning; what it ends with is an AttributeError. doctor names the library.
- A stop that was asked for ends with an exception in a worker's destructor, which Python ignores and so does doctor.
- A streamed piece may hold several tokens (1,500 came in 1,494 pieces), and the last piece has the finish_reason too:
  tokens are counted by `usage`.
- The engine's processes spin in sched_yield while they generate, for which Linux 6.18 can let everybody else on the
  machine wait half a minute. Nothing of ours caused it or can mend it; these tests leave the engine one CPU then.
- Progress bars are binary data to the journal, which shows `[94B blob data]` unless it is asked for all.
- On the CPU a block is a multiple of 128 tokens (1,152 instead of 1,056); with that, `checkpoint fit` agrees exactly.
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

    def write(self, version: str, whole: bool, failed: int) -> None:
        """Keep this run's figures in the cache folder and write the report of all that are there.

        whole: it was a run of everything, which replaces its column; a run of a part fills in its own cases. failed:
        tests that did not end as they should.
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
        head += (
            f"**In the last run {failed} tests failed**, whose cases are missing below or are older.\n\n"
            if failed
            else ""
        )
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
