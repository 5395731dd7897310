"""What the end of a journal says of a start that failed: the cause and its cure, in one line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from sparkops.serving.evidence import Evidence, Journal, Release
from sparkops.serving.failures import load
from sparkops.serving.triage import triage

# What journalctl puts before a line: "Nov 30 14:27:04 spark-1 run[19654]: ".
STAMP = re.compile(r"^\S.*?\[\d+\]: ")


def cause_of(lines: Iterable[str], recipe: Mapping[str, Any] | None = None) -> str:
    """The most telling finding of a journal's end as "cause; cure", or "" when nothing is known of it."""
    lines = list(lines)
    if not lines:
        return ""
    evidence = Evidence(
        properties={"LoadState": "loaded", "ActiveState": "failed"},
        release=Release(number=1, recipe=dict(recipe) if recipe else None, program=True),
        journal=Journal(run=[STAMP.sub("", line) for line in lines]),
    )
    findings = triage(evidence, load())
    return f"{findings[0].cause}; {findings[0].cure}" if findings else ""
