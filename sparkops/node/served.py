"""What a release serves: the words of its command, its recipe, and where its checkpoint came from."""

from __future__ import annotations

import json
import os

from sparkops.node.facts import read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def released(current: str) -> dict[str, Any]:
    """The release that `current` points to: number (None: there is none), recipe, words of the serve command."""
    from shlex import split

    try:
        number = os.readlink(current)
    except OSError:
        number = ""
    try:
        recipe = json.loads(read(os.path.join(current, "recipe.json")) or "null")
    except ValueError:
        recipe = None
    run = read(os.path.join(current, "run"))
    try:
        words = split(run.replace("\\\n", " "), comments=True)
    except ValueError:
        words = []
    words = words[1:] if words[:1] == ["exec"] else words
    program = bool(words) and os.path.isfile(words[0])
    return {"number": int(number) if number.isdigit() else None, "recipe": recipe, "words": words, "program": program}


def checkpoint_path(words: list[str]) -> str | None:
    """The checkpoint among a serve command's words."""
    return words[words.index("serve") + 1] if "serve" in words[:-1] else None


def revision(path: str) -> str | None:
    """The commit that `hf download` has noted (--local-dir), or that names a snapshot of the hub's cache."""
    head, _, last = path.rstrip("/").rpartition("/")
    if head.endswith("/snapshots"):
        return last
    noted = read(os.path.join(path, ".cache/huggingface/download/config.json.metadata"))
    return noted.partition("\n")[0].strip() or None
