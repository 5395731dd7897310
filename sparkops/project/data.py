"""Where the data that comes with sparkops is: playbooks, templates and the example inventory."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).parent.parent


def shipped(kind: str) -> Path:
    """The shipped folder of a kind ("playbooks", "templates", "inventory"): in the wheel, or beside the package."""
    data = PACKAGE / "_data"
    return data / kind if data.is_dir() else PACKAGE.parent / kind
