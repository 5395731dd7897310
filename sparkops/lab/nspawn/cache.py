"""Things that are slow to make, made once: folders in a cache, keyed by what went into them."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path


def key(*ingredients: str | bytes) -> str:
    """Twelve hex digits that change with any ingredient."""
    digest = hashlib.sha256()
    for ingredient in ingredients:
        content = ingredient.encode() if isinstance(ingredient, str) else ingredient
        digest.update(len(content).to_bytes(8, "big") + content)
    return digest.hexdigest()[:12]


def cached(folder: Path, name: str, build: Callable[[Path], None]) -> Path:
    """The folder `name` in the cache, built by `build(path)` unless it is there.

    Built beside and renamed, so what is under the name is whole; under a lock, so two labs do not build twice, and
    what a killed build left is known to be nobody's.
    """
    final = folder / name
    if final.is_dir():
        return final
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f".{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if final.is_dir():
            return final
        beside = folder / f".{name}.building"
        if beside.exists():
            shutil.rmtree(beside)
        beside.mkdir()
        build(beside)
        beside.rename(final)
    return final
