"""Host names as inventories write them: ranges (`web[01:10:2]`), ports (`web:2222`), addresses."""

from __future__ import annotations

import ipaddress
import re
import string
from collections.abc import Iterator

# More hosts than one range can mean by anything but a slip of the keyboard.
MAX_HOSTS = 65_536

_LETTERS = string.ascii_letters
_RANGE = re.compile(r"\[(?P<begin>[^\[\]:]*):(?P<end>[^\[\]:]*)(?::(?P<step>[^\[\]:]*))?\]")
_ADDRESS_RANGE = r"\[(?:[0-9a-f]+:[0-9a-f]+|[a-z]:[a-z])(?::[0-9]+)?\]"
_LABEL = rf"(?:\w|{_ADDRESS_RANGE})(?:[\w-]|{_ADDRESS_RANGE})*(?<![_-])"
_HOSTNAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*", re.IGNORECASE)
_BRACKETED = re.compile(r"\[(.+)\]:([0-9]{1,18})")
_WITH_PORT = re.compile(r"((?:[^:\[\]]|\[[^\]]*\])*):([0-9]{1,18})")


def split_port(text: str) -> tuple[str, int | None]:
    """`web:2222` -> ("web", 2222); `[fe80::1]:22` likewise; an address without a port keeps its colons."""
    found = _BRACKETED.fullmatch(text) or _WITH_PORT.fullmatch(text)
    if found and is_address(found[1]):
        return found[1], int(found[2])
    return text, None


def is_address(text: str) -> bool:
    """Whether text is one host name or IP address; ranges may stand in for a part of it."""
    if _HOSTNAME.fullmatch(text):
        return True
    try:
        ipaddress.ip_address(re.sub(_ADDRESS_RANGE, "0", text, flags=re.IGNORECASE))
    except ValueError:
        return False
    return True


def hosts_of(text: str) -> tuple[list[str], int | None]:
    """The hosts that an entry of an inventory means, and their port: `n[1:2]:22` -> n1 n2, 22. Raises ValueError."""
    pattern, port = split_port(text)
    names = expand(pattern)
    for name in names:
        check_host_name(name)
    return names, port


def expand(pattern: str) -> list[str]:
    """The names that a pattern with ranges means, in order: `n[08:10]` -> n08 n09 n10. Raises ValueError."""
    names = list(_expanded(pattern))
    if len(names) > MAX_HOSTS:
        raise ValueError(f"the range means more than {MAX_HOSTS} hosts")
    return names


def _expanded(pattern: str) -> Iterator[str]:
    if "[" not in pattern and "]" not in pattern:
        yield pattern
        return
    found = _RANGE.search(pattern)
    if not found or "[" in pattern[: found.start()] or "]" in pattern[: found.start()]:
        raise ValueError("a range is written [BEGIN:END] or [BEGIN:END:STEP]")
    head, tail = pattern[: found.start()], pattern[found.end() :]
    tails = expand(tail)
    values = _values(found["begin"] or "0", found["end"], found["step"])
    if len(values) * len(tails) > MAX_HOSTS:
        raise ValueError(f"the range means more than {MAX_HOSTS} hosts")
    for value in values:
        for rest in tails:
            yield f"{head}{value}{rest}"


def _values(begin: str, end: str, step_text: str | None) -> list[str]:
    if not end:
        raise ValueError("a range needs an end")
    if step_text is not None and not (_is_number(step_text) and int(step_text)):
        raise ValueError(f"a range's step is a number from 1, not {step_text!r}")
    step = int(step_text or 1)
    if _is_number(begin) and _is_number(end):
        width = len(begin) if begin.startswith("0") and len(begin) > 1 else 0
        if width and width != len(end):
            raise ValueError(f"{begin} and {end} have a different number of digits")
        first, last = int(begin), int(end)
        if (last - first) // step > MAX_HOSTS:
            raise ValueError(f"the range means more than {MAX_HOSTS} hosts")
        values = [str(number).zfill(width) for number in range(first, last + 1, step)]
    elif len(begin) == len(end) == 1 and begin in _LETTERS and end in _LETTERS:
        values = list(_LETTERS[_LETTERS.index(begin) : _LETTERS.index(end) + 1 : step])
    else:
        raise ValueError(f"{begin}:{end} is neither two numbers nor two letters")
    if not values:
        raise ValueError(f"{begin} comes after {end}")
    return values


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def short_name(name: str) -> str:
    """A host name up to its first dot; an IP address as it is."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name.split(".")[0]
    return name


def check_host_name(name: str) -> None:
    """Raises ValueError for a name that cannot be a host's (it would be a path, an option or two words)."""
    if not name:
        raise ValueError("a host's name is empty")
    if name == "all":
        raise ValueError("'all' is the group of every host, so no host is called that")
    if name.startswith("-") or "/" in name or any(character <= " " or character == "\x7f" for character in name):
        raise ValueError(f"{name!r} is not a host name")
