"""Time spans as systemd.time(7) writes them."""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta

UNITS = {
    **dict.fromkeys(("us", "usec", "µs"), 1e-6),
    **dict.fromkeys(("ms", "msec"), 1e-3),
    **dict.fromkeys(("", "s", "sec", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hour", "hours"), 3600.0),
    **dict.fromkeys(("d", "day", "days"), 86400.0),
}
FORMATS = ("%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d", "%H:%M:%S", "%H:%M")
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


class NoTime(ValueError):
    """It is no point in time; the message is the text."""


def moment(text: str, now: float) -> float:
    """A point in time as systemd.time(7) writes it, in seconds since 1970. Raises NoTime.

    Of its forms: "now", "today", "yesterday", "-10min", "10 min ago", "2026-11-30 12:00", "12:00", "@1700000000".
    """
    words = text.strip()
    midnight = datetime.fromtimestamp(now).replace(hour=0, minute=0, second=0, microsecond=0)
    named = {"now": now, "today": midnight.timestamp(), "yesterday": (midnight - timedelta(days=1)).timestamp()}
    if words in named:
        return named[words]
    try:
        if words.startswith("@"):
            return float(words[1:])
        if words.startswith("-"):
            return now - parse(words[1:])
        if words.endswith(" ago"):
            return now - parse(words.removesuffix(" ago"))
    except ValueError:
        raise NoTime(text) from None
    for form in FORMATS:
        try:
            found = datetime.strptime(words, form)
        except ValueError:
            continue
        return (found if "%Y" in form else datetime.combine(midnight, found.time())).timestamp()
    raise NoTime(text)
