"""Reads a `vllm serve` command line: placeholders filled, one command, its flags with their values."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sparkops.errors import InputError, Position

# What a shell would do more than pass words on: in single quotes nothing, in double quotes it expands.
PIECES = re.compile(r"""'[^']*'|"(?:\\.|[^"\\])*"|[^'"]+""")
EXPANDS = re.compile(r"(?<!\\)(\$[A-Za-z_{(]\w*|`)")
OPERATES = re.compile(r"[;|&<>]+")
ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
FLAG = re.compile(r"--?[A-Za-z]")


@dataclass(frozen=True)
class ServeLine:
    """environment: of assignments before the command; flags: in order, each with its words (`--x=1` has one)."""

    model: str | None
    environment: dict[str, str] = field(default_factory=dict)
    flags: list[tuple[str, list[str]]] = field(default_factory=list)


def filled(template: str, values: Mapping[str, Any], used: set[str]) -> str:
    """`{name}` replaced where there is such a value; `{{` is a brace in templates that have any. Adds to `used`."""
    doubled = "{{" in template

    def replace(found: re.Match[str]) -> str:
        if found[1] is None:
            return found[0][0] if doubled else found[0]
        if found[1] not in values:
            return found[0]
        used.add(found[1])
        return word(values[found[1]])

    return re.sub(r"\{\{|\}\}|\{([A-Za-z_]\w*)\}", replace, template)


def word(value: Any) -> str:
    """A value as a word of a command line; mappings, lists and bools as JSON."""
    return str(value) if isinstance(value, (str, int, float)) and not isinstance(value, bool) else json.dumps(value)


def read(command: str, where: Position | None) -> ServeLine:
    """The one `vllm serve` of a command. Raises InputError: it is a script, or starts something else."""
    joined = re.sub(r"\\[ \t]*\n", " ", command)
    lines = [line for line in map(str.strip, joined.splitlines()) if line and not line.startswith("#")]
    environment: dict[str, str] = {}
    while lines and lines[0].startswith("export "):
        environment.update(_assignments(_words(lines.pop(0), where)[1:], where))
    if len(lines) != 1:
        raise _script(f"{len(lines)} commands", where)
    words = _words(lines[0], where)
    while words and ASSIGNMENT.fullmatch(words[0]):
        environment.update(_assignments([words.pop(0)], where))
    if words[:1] == ["exec"]:
        words.pop(0)
    if words[:2] != ["vllm", "serve"]:
        raise _script(f"it starts with {' '.join(words[:2])!r}", where)
    return _flags(words[2:], environment)


def _flags(words: list[str], environment: dict[str, str]) -> ServeLine:
    model = words.pop(0) if words and not FLAG.match(words[0]) else None
    flags: list[tuple[str, list[str]]] = []
    for one in words:
        if FLAG.match(one):
            name, equals, value = one.partition("=")
            # vLLM takes --max_model_len too.
            flags.append((name.replace("_", "-") if name.startswith("--") else name, [value] if equals else []))
        elif flags:
            flags[-1][1].append(one)
    return ServeLine(model, environment, flags)


def _words(line: str, where: Position | None) -> list[str]:
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise InputError(f"the command cannot be read: {error}", where=where) from None
    for piece in PIECES.findall(line):
        expands = None if piece.startswith("'") else EXPANDS.search(piece)
        found = expands or (None if piece[0] in "'\"" else OPERATES.search(piece))
        if found:
            raise _script(f"it has {found[0]}", where)
    return words


def _assignments(words: list[str], where: Position | None) -> dict[str, str]:
    found = [ASSIGNMENT.fullmatch(one) for one in words]
    if not all(found):
        raise _script("an export without a value", where)
    return {one[1]: one[2] for one in found if one}


def _script(what: str, where: Position | None) -> InputError:
    return InputError(
        f"the command is not one `vllm serve`: {what}",
        where=where,
        hint="a recipe of ours is one command without a shell; write it by hand",
    )
