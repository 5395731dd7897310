"""A template's first line `#jinja2: name: value, ...`, which sets options of Jinja for that template."""

from __future__ import annotations

import ast
from typing import Any

from sparkops.errors import InputError
from sparkops.project.near import did_you_mean

MARK = "#jinja2:"
_TEXTS = (
    "block_start_string", "block_end_string", "variable_start_string", "variable_end_string", "comment_start_string",
    "comment_end_string", "line_statement_prefix", "line_comment_prefix", "newline_sequence",
)  # fmt: skip
_FLAGS = ("trim_blocks", "lstrip_blocks", "keep_trailing_newline")


def split(source: str) -> tuple[str, dict[str, Any]]:
    """The template without that line, and the options. Raises InputError."""
    if not source.startswith(MARK):
        return source, {}
    line, newline, rest = source[len(MARK) :].partition("\n")
    if not newline:
        raise InputError(f"there is no template below the line {MARK!r}")
    return rest, dict(_option(pair) for pair in line.split(","))


def _option(pair: str) -> tuple[str, Any]:
    name, colon, text = (part.strip() for part in pair.partition(":"))
    if not colon or name not in (*_TEXTS, *_FLAGS):
        raise InputError(f"{MARK!r} has no option {name!r}", hint=did_you_mean(name, (*_TEXTS, *_FLAGS)))
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        raise InputError(f"{MARK!r}: {text!r} is no value for {name!r}", hint="True, False or a quoted text") from None
    if not isinstance(value, bool if name in _FLAGS else str):
        raise InputError(f"{MARK!r}: {text!r} is no value for {name!r}", hint="True, False or a quoted text")
    return name, value
