"""Values read from YAML that know where they stand: `Mapping`, `Sequence`, `Text`, `Integer`.

They are a dict, a list, a str and an int to everything else. Python's own types come out of any operation on them.
"""

from __future__ import annotations

from typing import Any

from sparkops.errors import Position


class Mapping(dict[Any, Any]):
    """A dict with the position of itself, of each key and of each value; `texts` holds non-strings as written."""

    __slots__ = ("keys_at", "position", "texts", "values_at")

    def __init__(self, *items: Any, position: Position | None = None) -> None:
        super().__init__(*items)
        self.position = position
        self.keys_at: dict[Any, Position] = {}
        self.values_at: dict[Any, Position] = {}
        self.texts: dict[Any, str] = {}


class Sequence(list[Any]):
    """A list with the position of itself and of each item; `texts` holds non-strings as written."""

    __slots__ = ("items_at", "position", "texts")

    def __init__(self, *items: Any, position: Position | None = None) -> None:
        super().__init__(*items)
        self.position = position
        self.items_at: list[Position] = []
        self.texts: dict[int, str] = {}


class Text(str):
    """A str with its position. `block`: its lines are the file's lines below the one it starts on."""

    __slots__ = ("block", "position")

    position: Position | None
    block: bool

    def __new__(cls, value: str = "", position: Position | None = None, block: bool = False) -> Text:
        text = super().__new__(cls, value)
        text.position = position
        text.block = block
        return text

    def at_line(self, line: int) -> Position | None:
        """Where line `line` (from 1) of this text stands; only a block keeps its lines apart."""
        if self.position is None or not self.block:
            return self.position
        return Position(self.position.file, self.position.line + line, 1)


class Unsafe(Text):
    """A `!unsafe` text: never a template."""

    __slots__ = ()


class Integer(int):
    """An int that was not written in plain decimal (0644, 0x1F, 22:22); `text` is what the file says."""

    text: str

    def __new__(cls, value: int = 0, text: str = "") -> Integer:
        number = super().__new__(cls, value)
        number.text = text or str(value)
        return number


def position(value: Any, key: Any = None) -> Position | None:
    """Where a value stands; with `key`, where that key's value, or that list item, does. None: not from a file."""
    if key is None:
        found = getattr(value, "position", None)
        return found if isinstance(found, Position) else None
    if isinstance(value, Mapping):
        return value.values_at.get(key, value.position)
    if isinstance(value, Sequence) and isinstance(key, int):
        return value.items_at[key] if -1 < key < len(value.items_at) else value.position
    return position(value)


def key_position(container: Any, key: Any) -> Position | None:
    """Where a key itself stands in its mapping."""
    if isinstance(container, Mapping):
        return container.keys_at.get(key, container.position)
    return position(container)


def original(container: Any, key: Any) -> str | None:
    """What the file says for a value that is not a string (`yes`, `0644`, `1.10`), or None."""
    if isinstance(container, (Mapping, Sequence)):
        return container.texts.get(key)
    return None


def plain(value: Any) -> Any:
    """The value in Python's own types, without positions: what msgspec and json take."""
    if isinstance(value, dict):
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, str):
        return str(value)
    return int(value) if isinstance(value, Integer) else value
