"""Ways to break a text, each drawn from a seeded source of chance."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

WORDS = ("yes", "null", "{}", "[]", "~", "0644", "1e999", "9" * 400, "-", "!!python/object:os.system x", "&a *a", "'")
SNIPPETS = (
    "{{",
    "}}",
    "{% for x in y %}",
    "{{ nosuch }}",
    "{{ 1 / 0 }}",
    "{{ [] | first }}",
    "\t",
    ": ",
    "- ",
    "#",
    '"',
)
UNICODE = ("\u202e", "\x00", "\ufeff", "\u2028", "\x85", "\U0001f600", "e\u0301", "\ud7ff", "\x1b[31m")


def delete_line(text: str, chance: Random) -> str:
    """Leave a line out."""
    lines = text.splitlines(keepends=True)
    del lines[chance.randrange(len(lines))]
    return "".join(lines)


def repeat_line(text: str, chance: Random) -> str:
    """Have a line twice."""
    lines = text.splitlines(keepends=True)
    at = chance.randrange(len(lines))
    return "".join([*lines[: at + 1], *lines[at:]])


def shift_line(text: str, chance: Random) -> str:
    """Change how far a line is indented."""
    lines = text.splitlines(keepends=True)
    at = chance.randrange(len(lines))
    lines[at] = " " * chance.randrange(9) + lines[at].lstrip()
    return "".join(lines)


def swap_lines(text: str, chance: Random) -> str:
    """Two lines in one another's place."""
    lines = text.splitlines(keepends=True)
    one, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return "".join(lines)


def change_value(text: str, chance: Random) -> str:
    """Another kind of value behind a word."""
    lines = text.splitlines(keepends=True)
    at = chance.choice([number for number, line in enumerate(lines) if ": " in line])
    lines[at] = lines[at][: lines[at].index(": ") + 2] + chance.choice(WORDS) + "\n"
    return "".join(lines)


def change_word(text: str, chance: Random) -> str:
    """A word that nobody knows."""
    words = [part.strip() for line in text.splitlines() for part in line.split(":")[:1] if part.strip(" -")]
    word = chance.choice(words).strip(" -{")
    return text.replace(word, word[: len(word) // 2] + chance.choice("xz_9") + word[len(word) // 2 :], 1)


def cut(text: str, chance: Random) -> str:
    """The file ends early."""
    return text[: chance.randrange(len(text))]


def insert(text: str, chance: Random) -> str:
    """Something that does not belong there."""
    at = chance.randrange(len(text))
    return text[:at] + chance.choice(SNIPPETS) + text[at:]


def insert_unicode(text: str, chance: Random) -> str:
    """A character that editors hide."""
    at = chance.randrange(len(text))
    return text[:at] + chance.choice(UNICODE) + text[at:]


def scramble(text: str, chance: Random) -> str:
    """Characters replaced by random ones."""
    letters = list(text)
    for _ in range(chance.randrange(1, 12)):
        letters[chance.randrange(len(letters))] = chr(chance.randrange(1, 0x250))
    return "".join(letters)


def nest(text: str, chance: Random) -> str:
    """A value inside very many brackets."""
    lines = text.splitlines(keepends=True)
    at = chance.choice([number for number, line in enumerate(lines) if ": " in line])
    depth = chance.choice((20, 500, 5000))
    lines[at] = lines[at][: lines[at].index(": ") + 2] + "[" * depth + "]" * depth + "\n"
    return "".join(lines)


MUTATIONS: tuple[Callable[[str, Random], str], ...] = (
    delete_line, repeat_line, shift_line, swap_lines, change_value, change_word, cut, insert, insert_unicode, scramble,
    nest,
)  # fmt: skip


def broken(text: str, seed: int) -> str:
    """The text after one to three mutations; the kind of the first goes round with the seed."""
    chance = Random(seed)
    text = MUTATIONS[seed % len(MUTATIONS)](text, chance)
    for _ in range(chance.randrange(3)):
        if ": " in text:
            text = chance.choice(MUTATIONS[:10])(text, chance)
    return text
