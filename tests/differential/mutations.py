"""Breaks a text in ways that people and editors do; the same number breaks it the same way."""

from __future__ import annotations

from random import Random

HOSTILE = [
    "\t", "\0", "\x85", "\u2028", "é", "'", '"', "[", "]", "{", "}", ":", "=", "#", ";", ",", "|", "&", "*",
    "!", "%", "@", "-", "\\", "<<: ", "{{ x }}", "- ", "---\n", "[a:b:c]", "[1:99999999]", "[web:children]\n",
    "&a [*a]",    "!!python/object:os.system ", "!vault |", "all", "9" * 5000, "(" * 300, "\r", "\n",
]  # fmt: skip


def mutated(text: str, number: int) -> str:
    """`text` with one to three things wrong."""
    random = Random(number)
    for _ in range(random.randint(1, 3)):
        text = random.choice([_insert, _delete, _cut, _twice, _swap, _indent, _replace])(text, random)
    return text


def _insert(text: str, random: Random) -> str:
    at = random.randint(0, len(text))
    return text[:at] + random.choice(HOSTILE) + text[at:]


def _replace(text: str, random: Random) -> str:
    at = random.randint(0, max(0, len(text) - 1))
    return text[:at] + random.choice(HOSTILE) + text[at + 1 :]


def _delete(text: str, random: Random) -> str:
    at = random.randint(0, max(0, len(text) - 1))
    return text[:at] + text[at + random.randint(1, 8) :]


def _cut(text: str, random: Random) -> str:
    return text[: random.randint(0, len(text))]


def _lines(text: str, random: Random) -> tuple[list[str], int]:
    lines = text.split("\n")
    return lines, random.randrange(len(lines))


def _twice(text: str, random: Random) -> str:
    lines, at = _lines(text, random)
    return "\n".join([*lines[: at + 1], *lines[at:]])


def _swap(text: str, random: Random) -> str:
    lines, at = _lines(text, random)
    other = random.randrange(len(lines))
    lines[at], lines[other] = lines[other], lines[at]
    return "\n".join(lines)


def _indent(text: str, random: Random) -> str:
    lines, at = _lines(text, random)
    lines[at] = random.choice(["  ", " ", "\t"]) + lines[at]
    return "\n".join(lines)
