"""Filters of numbers, sizes, dates and chance."""

from __future__ import annotations

import math
import random
import re
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

from sparkops.errors import InputError

_UNITS = "BKMGTPEZY"
_PREFIXES = ("", "kilo", "mega", "giga", "tera", "peta", "exa", "zetta", "yotta")


def human_readable(size: float, isbits: bool = False, unit: str | None = None) -> str:
    """A size for people, in units of 1,024: "1.50 GB"; `unit` is the letter of one."""
    if unit is None:
        power = max((power for power in range(len(_UNITS)) if size >= 1024**power), default=0)
    else:
        power = max(0, _UNITS.find(unit.upper())) if len(unit) == 1 else 0
    word = "bits" if isbits else "Bytes"
    return f"{size / 1024**power:.2f} {_UNITS[power] + word[0] if power else word}"


def human_to_bytes(size: Any, default_unit: str | None = None, isbits: bool = False) -> int:
    """Bytes (or bits) of a text such as 10M, 1.5 GB, 2 kilobyte; units of 1,024. Raises InputError."""
    found = re.fullmatch(r"([0-9]*\.?[0-9]+)(?:\s*([A-Za-z]+))?\s*", str(size))
    if not found:
        raise InputError(f"'human_to_bytes' reads sizes such as 10M or 1.5 GB, not {size!r}")
    unit = found[2] or default_unit
    if unit is None:
        return round(float(found[1]))
    power = _UNITS.find(unit[0].upper())
    word, letter = ("bit", "b") if isbits else ("byte", "B")
    known = power >= 0 and (
        len(unit) == 1 or unit.lower() == _PREFIXES[power] + word or (power > 0 and unit == _UNITS[power] + letter)
    )
    if not known:
        raise InputError(f"'human_to_bytes' has no unit {unit!r} for {word}s", hint=f"such as K, K{letter}, kilo{word}")
    return round(float(found[1]) * int(1024**power))


def _strftime(template: str, second: Any = None, utc: bool = False) -> str:
    """A moment (seconds since 1970; now without one) in words."""
    moment = None if second is None else float(second)
    return time.strftime(template, time.gmtime(moment) if utc else time.localtime(moment))


def _to_datetime(text: str, format: str = "%Y-%m-%d %H:%M:%S") -> datetime:
    return datetime.strptime(text, format)


def _random(end: Any, start: int | None = None, step: int | None = None, seed: Any = None) -> Any:
    source: random.Random = random.SystemRandom() if seed is None else random.Random(seed)
    if isinstance(end, int):
        return source.randrange(start or 0, end, step or 1)
    if start or step:
        raise InputError("'random' takes start and step with a number only")
    return source.choice(end)


def _shuffle(items: Any, seed: Any = None) -> Any:
    if not hasattr(items, "__iter__"):
        return items
    shuffled = list(items)
    (random.Random(seed) if seed else random.SystemRandom()).shuffle(shuffled)
    return shuffled


QUANTITY_FILTERS: dict[str, Callable[..., Any]] = {
    "human_readable": human_readable, "human_to_bytes": human_to_bytes,
    "to_datetime": _to_datetime, "strftime": _strftime, "random": _random, "shuffle": _shuffle,
    "log": lambda value, base=math.e: math.log10(value) if base == 10 else math.log(value, base),
    "pow": math.pow,
    "root": lambda value, base=2: math.sqrt(value) if base == 2 else math.pow(value, 1 / float(base)),
}  # fmt: skip
