"""The line of a log that an unknown failure begins with."""

from __future__ import annotations

import re
from typing import NamedTuple

from sparkops.serving.failures import Failures

# What vLLM puts before a line: (EngineCore pid=7) ERROR 07-28 10:00:00 [core.py:1136]
PREFIX = re.compile(r"^(?:\(\w[^()]*\)\s?)?(?:(?P<level>[A-Z]+)\s+\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)? \[[^\]]*\]\s?)?")
# An exception as a traceback ends with it, the interpreter's or the C++ runtime's last word, argparse's.
EXCEPTION = re.compile(
    r"^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Failure|Exit|Warning|Fault|Iteration|NotFound)(?::\s.*|:?)$"
)
LAST_WORD = re.compile(
    r"^(?:Fatal Python error: |terminate called |Segmentation fault|\S*vllm[\w ]*: error: |/bin/sh: )"
)
SYSTEMD = re.compile(r"^\S+\.service: |^(?:Starting|Started|Stopping|Stopped|Failed to start) ")


class Error(NamedTuple):
    """line: as it was logged; said: without what vLLM puts before it."""

    line: str
    said: str


def root_cause(lines: list[str], failures: Failures) -> Error | None:
    """The first real error line of the account that leads to the end; None when there is no error line.

    vLLM logs the engine's traceback, and at last `Engine core initialization failed. See root cause above.` The account
    begins where the engine says that it failed; of chained exceptions the first is the root. Without such a beginning
    it is the exception next above that line, or the last one.
    """
    never = [re.compile(pattern) for pattern in failures.never_the_cause]
    begins = [re.compile(pattern) for pattern in failures.account_begins]
    real = [line for line in lines if not SYSTEMD.search(line)]
    # The last line that only says that there was an error: the cause is above it.
    end = next((at for at in range(len(real), 0, -1) if any(one.search(real[at - 1]) for one in never[:1])), len(real))
    start = next((at for at in range(end, 0, -1) if any(one.search(real[at - 1]) for one in begins)), None)
    errors = [(at, error) for at, line in enumerate(real[:end]) if (error := as_error(line, never)) is not None]
    inside = [error for at, error in errors if start is not None and at >= start]
    if inside:
        return next((error for error in inside if exceptional(error.said)), inside[0])
    exceptions = [error for _, error in errors if exceptional(error.said)]
    return next(iter(exceptions[-1:] or [error for _, error in errors][-1:]), None)


def without_ignored(lines: list[str]) -> list[str]:
    """The lines without the exceptions that Python has ignored (in a destructor): vLLM's workers end with one."""
    kept, within = [], False
    for line in lines:
        if "Exception ignored in: " in line:
            within = True
            continue
        # A traceback ends with the exception's line; a line with a level, or systemd's, is never part of one.
        inside, within = within, within and not exceptional(spoken(line))
        found = PREFIX.match(line)
        if inside and not SYSTEMD.search(line) and not (found and found["level"]):
            continue
        within = False
        kept.append(line)
    return kept


def spoken(line: str) -> str:
    """A line without what vLLM puts before it."""
    found = PREFIX.match(line)
    return line[found.end() :] if found else line


def as_error(line: str, never: list[re.Pattern[str]]) -> Error | None:
    """The line, if it is an error of its own."""
    if any(pattern.search(line) for pattern in never):
        return None
    found = PREFIX.match(line)
    level = found["level"] if found else None
    said = spoken(line)
    bad = level in ("ERROR", "CRITICAL", "FATAL") and bool(said.strip()) and not said.startswith((" ", "\t"))
    if bad or (level is None and exceptional(said)):
        return Error(line, said.strip())
    return None


def exceptional(said: str) -> bool:
    """Whether a text is an exception's line rather than any message."""
    return bool(EXCEPTION.match(said) or LAST_WORD.match(said))
