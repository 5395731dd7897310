"""The source line of a position, with a caret under its column."""

from __future__ import annotations

from pathlib import Path

from sparkops.errors import Position

# A longer line is cut, so that the caret stays under its column on a terminal.
WIDTH = 100


def caret(line: str, column: int) -> str:
    """`line` and, under its column (from 1), a caret; tabs keep their width."""
    line = line.rstrip("\r\n")
    cut = max(0, column - WIDTH)
    line, column = line[cut : cut + WIDTH + 20], column - cut
    indent = "".join("\t" if character == "\t" else " " for character in line[: column - 1])
    return f"    {line}\n    {indent.ljust(min(column - 1, len(line)))}^"


def excerpt(position: Position | str | None) -> str:
    """The line that a position names and a caret line; empty when it names no file that can be read."""
    if not isinstance(position, Position):
        return ""
    try:
        lines = Path(position.file).read_text(encoding="utf-8-sig").split("\n")
    except (OSError, ValueError):
        return ""
    return caret(lines[position.line - 1], position.column) if 0 < position.line <= len(lines) else ""
