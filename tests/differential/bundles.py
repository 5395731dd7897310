"""Inventories as data: files with many cases, each some files in a folder of its own.

==== NAME [| SOURCE...]     sources are -i's; left out: the first file
---- PATH [+x]              a file and, below, its text; <CR> stands for a carriage return
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "inventories"


@dataclass(frozen=True)
class Case:
    """files: path -> (text, whether it is executable)."""

    name: str
    sources: list[str]
    files: dict[str, tuple[str, bool]]

    def write(self, folder: Path) -> list[str]:
        """Writes the files below `folder`; the sources, absolute but for lists of hosts."""
        for name, (text, executable) in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.replace("<CR>", "\r"), encoding="utf-8", newline="")
            if executable:
                path.chmod(0o755)
        return [source if "," in source else str(folder / source) for source in self.sources]


def cases() -> list[Case]:
    """All of them, in the order of files and lines."""
    return [case for path in sorted(FOLDER.glob("*.txt")) for case in _cases(path.read_text(encoding="utf-8"))]


def _cases(text: str) -> list[Case]:
    found = []
    for block in ("\n" + text).split("\n==== ")[1:]:
        head, *parts = block.split("\n---- ")
        name, _, sources = head.strip().partition(" | ")
        files = {}
        for part in parts:
            title, _, content = part.partition("\n")
            path, _, mark = title.partition(" ")
            files[path] = (content.rstrip("\n") + "\n" if content.strip() else "", mark == "+x")
        found.append(Case(name, sources.split() or list(files)[:1], files))
    return found
