"""How long `sparkops --help` takes, as a multiple of `python -c "import click"`: medians of interleaved runs."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from statistics import median

RUNS = 15
LIMIT = 2.5


def seconds(argv: list[str]) -> float:
    """Wall seconds of one run of a command that must succeed."""
    start = time.perf_counter()
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def measure(runs: int = RUNS) -> tuple[float, float]:
    """Median seconds of `sparkops --help` and of an `import click`, after one run of each to warm up."""
    ours = [str(Path(sys.executable).with_name("sparkops")), "--help"]
    base = [sys.executable, "-c", "import click"]
    pairs = [(seconds(ours), seconds(base)) for _ in range(runs + 1)][1:]
    return median(ours for ours, _ in pairs), median(base for _, base in pairs)


def main() -> int:
    ours, base = measure()
    print(f"sparkops --help  {ours * 1000:6.0f} ms")
    print(f"import click     {base * 1000:6.0f} ms")
    print(f"ratio            {ours / base:6.2f}  (limit {LIMIT}, {RUNS} pairs, medians)")
    return 0 if ours / base < LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
