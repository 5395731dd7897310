"""Unit files: found by name, and read as sections of settings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

Sections = dict[str, list[tuple[str, str]]]


class UnitFile(NamedTuple):
    """A unit as it is on disk: its file and drop-ins, what they say, and when the newest was changed (ns)."""

    path: Path
    dropins: list[Path]
    sections: Sections
    changed: int


def template(name: str) -> str:
    """`a@.service` for `a@b.service`; other names as they are."""
    stem, at, rest = name.partition("@")
    return f"{stem}@.{rest.rpartition('.')[2]}" if at else name


def find(name: str, folders: Sequence[Path]) -> Path | None:
    """The file of a unit, or of the template it is an instance of."""
    for candidate in dict.fromkeys((name, template(name))):
        for folder in folders:
            if (path := folder / candidate).is_file():
                return path
    return None


def read(name: str, folders: Sequence[Path]) -> UnitFile | None:
    """A unit's files, or None when there are none. OSError, ValueError when they cannot be read."""
    path = find(name, folders)
    if path is None:
        return None
    places = [folder / f"{candidate}.d" for candidate in dict.fromkeys((template(name), name)) for folder in folders]
    dropins = [dropin for place in places for dropin in sorted(place.glob("*.conf"))]
    sections: Sections = {}
    for file in (path, *dropins):
        for section, settings in parse(file.read_text()).items():
            sections.setdefault(section, []).extend(settings)
    return UnitFile(path, dropins, sections, changed(path, dropins))


def changed(path: Path, dropins: Sequence[Path]) -> int:
    """When the newest of a unit's files was changed, ns; 0 when one has gone."""
    try:
        return max(file.stat().st_mtime_ns for file in (path, *dropins))
    except FileNotFoundError:
        return 0


def parse(text: str) -> Sections:
    """Sections of (key, value) in their order (systemd.syntax(7)). ValueError for a line that is neither."""
    sections: Sections = {}
    current: list[tuple[str, str]] | None = None
    held = ""
    for number, raw in enumerate([*text.splitlines(), ""], 1):
        if raw.lstrip()[:1] in ("#", ";"):
            continue  # also between the lines of one setting
        if raw.endswith("\\"):
            held += raw[:-1] + " "
            continue
        line, held = (held + raw).strip(), ""
        if line.startswith("[") and line.endswith("]"):
            current = sections.setdefault(line[1:-1], [])
        elif line:
            key, equals, value = line.partition("=")
            if current is None or not equals:
                raise ValueError(f"line {number} is neither a section nor a setting: {line}")
            current.append((key.strip(), value.strip()))
    return sections
