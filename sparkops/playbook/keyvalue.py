"""Ansible's short form of arguments: `file: path=/x state=directory`, `command: make creates=/x`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection
from typing import Any

from sparkops.errors import InputError, Position
from sparkops.project.yaml import Text

_PAIR = re.compile(r"^([A-Za-z_]\w*)=(.*)$", re.DOTALL)


def split(text: str, known: Collection[str] | None, where: Position | None) -> tuple[dict[str, Any], str]:
    """(arguments, what is left of the text).

    With `known` (a module that takes free text) only these words are arguments, and only they are taken out.
    Raises InputError for a word that is no argument, or a quote that never closes.
    """
    found: dict[str, Any] = {}
    left: list[str] = []
    for word in _words(text, where):
        pair = _PAIR.match(word)
        if pair and (known is None or pair[1] in known):
            found[pair[1]] = _like(text, _unquoted(pair[2]))
        elif known is None:
            raise InputError(f"{word!r} is not NAME=VALUE", where=where, hint="write the arguments as a mapping")
        else:
            left.append(word)
    return found, " ".join(left) if found else text


def _words(text: str, where: Position | None) -> list[str]:
    """The text's words; quotes and templates keep their spaces and stay as they are."""
    words: list[str] = []
    word, quote, depth = "", "", 0
    for at, character in enumerate(text):
        pair = text[at : at + 2]
        if not quote and pair in ("{{", "{%"):
            depth += 1
        elif not quote and text[at - 1 : at + 1] in ("}}", "%}") and depth:
            depth -= 1
        if not depth and character in "'\"" and text[at - 1 : at] != "\\":
            quote = "" if quote == character else quote or character
        if character.isspace() and not quote and not depth:
            words += [word] if word else []
            word = ""
        else:
            word += character
    if quote:
        raise InputError(f"the quote {quote} is never closed", where=where)
    return [*words, word] if word else words


def _unquoted(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return shlex.split(text)[0] if text[0] == '"' else text[1:-1]
    return text


def _like(text: str, value: str) -> Text:
    return Text(value, getattr(text, "position", None))
