"""Time spans as systemd.time(7) writes them."""

from __future__ import annotations

import math
import re

UNITS = {
    **dict.fromkeys(("us", "usec", "µs"), 1e-6),
    **dict.fromkeys(("ms", "msec"), 1e-3),
    **dict.fromkeys(("", "s", "sec", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hour", "hours"), 3600.0),
    **dict.fromkeys(("d", "day", "days"), 86400.0),
}
SHOWN = (("d", 86_400_000_000), ("h", 3_600_000_000), ("min", 60_000_000), ("s", 1_000_000), ("ms", 1000), ("us", 1))


def parse(text: str) -> float:
    """Seconds of "1min 30s", "90", "500ms"; math.inf for "infinity". ValueError for anything else."""
    if text.strip() == "infinity":
        return math.inf
    parts = re.findall(r"\s*(\d+(?:\.\d+)?)\s*([a-zµ]*)", text)
    if not parts or re.sub(r"\s*(\d+(?:\.\d+)?)\s*([a-zµ]*)", "", text).strip():
        raise ValueError(f"not a time span: {text}")
    try:
        return sum(float(number) * UNITS[unit] for number, unit in parts)
    except KeyError as error:
        raise ValueError(f"not a time span: {text}") from error


def show(seconds: float) -> str:
    """A span as `systemctl show` prints it: "1min 30s", "100ms", "0", "infinity"."""
    if math.isinf(seconds):
        return "infinity"
    rest = round(seconds * 1e6)
    words = []
    for unit, size in SHOWN:
        count, rest = divmod(rest, size)
        if count:
            words.append(f"{count}{unit}")
    return " ".join(words) or "0"
