"""Words of a unit file: quotes and escapes, %-specifiers, and variables (systemd.syntax(7), systemd.service(5))."""

from __future__ import annotations

import re
from collections.abc import Mapping

ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "s": " "}
ESCAPES |= {"\\": "\\", '"': '"', "'": "'"}
CODES = {"x": (2, 16), "u": (4, 16), "U": (8, 16)}


def split(text: str) -> list[str]:
    """Words of a line: quotes join, C escapes are resolved. ValueError when a quote or an escape is not complete."""
    words: list[str] = []
    word: str | None = None
    quote = ""
    position = 0
    while position < len(text):
        char = text[position]
        position += 1
        if char == "\\":
            piece, position = escape(text, position)
            word = (word or "") + piece
        elif quote:
            if char == quote:
                quote = ""
            else:
                word = (word or "") + char
        elif char in "'\"":
            quote, word = char, word or ""
        elif char.isspace():
            words += [] if word is None else [word]
            word = None
        else:
            word = (word or "") + char
    if quote:
        raise ValueError(f"a quote is not closed: {text}")
    return words + ([] if word is None else [word])


def escape(text: str, position: int) -> tuple[str, int]:
    """The character of an escape that stands at `position`, behind its backslash, and where it ends."""
    char = text[position : position + 1]
    if char in ESCAPES and char:
        return ESCAPES[char], position + 1
    digits, base = CODES.get(char, (3, 8))
    start = position + (char in CODES)
    number = text[start : start + digits]
    if len(number) < digits:
        raise ValueError(f"an escape is not complete: {text}")
    return chr(int(number, base)), start + digits


def specify(text: str, specifiers: Mapping[str, str]) -> str:
    """The text with its %-specifiers resolved; `specifiers` by letter. ValueError for one it has not."""

    def value(match: re.Match[str]) -> str:
        if (letter := match[1]) == "%":
            return "%"
        if letter not in specifiers:
            raise ValueError(f"the specifier %{letter} is not known: {text}")
        return specifiers[letter]

    return re.sub(r"%(.?)", value, text)


def expand(words: list[str], variables: Mapping[str, str]) -> list[str]:
    """The words of a command with variables: ${NAME} within a word, $NAME as a word of its own becomes 0..n words."""
    expanded: list[str] = []
    for word in words:
        if whole := re.fullmatch(r"\$([A-Za-z_]\w*)", word):
            expanded += variables.get(whole[1], "").split()
        else:
            expanded.append(re.sub(r"\$\$|\$\{([A-Za-z_]\w*)\}", lambda m: replaced(m, variables), word))
    return expanded


def replaced(match: re.Match[str], variables: Mapping[str, str]) -> str:
    """What stands for `$$` or `${NAME}`."""
    return "$" if match[0] == "$$" else variables.get(match[1], "")
