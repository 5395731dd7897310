"""What playbooks see of the catalogue: recipes, engines and tools as plain variables."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from sparkops.recipes.identity import engine_id
from sparkops.recipes.load import Catalogue
from sparkops.recipes.schema import Recipe


def recipe_variables(recipe: Recipe) -> dict[str, Any]:
    """The recipe's fields, dates as text."""
    found: dict[str, Any] = msgspec.to_builtins(recipe)
    return found


def engine_variables(catalogue: Catalogue, name: str, patches: Iterable[str]) -> dict[str, Any]:
    """An engine with the patches it is to carry.

    `by_architecture` has, for each of `uname -m`, the `id` (its directory's name) and the `lock` (a path here).
    `python` is the interpreter to look for on the node.
    """
    engine = catalogue.engine(name)
    named = list(patches)
    files = [catalogue.patch(patch) for patch in named]
    return {
        "name": engine.id,
        "python": f"python{engine.python}" if engine.python else "python3",
        "expect_cuda": engine.expect_cuda,
        "probe": engine.probe,
        "files": engine.files,
        "patches": named,
        "by_architecture": {
            machine: {"id": engine_id(engine, Path(lock).read_bytes(), files), "lock": lock}
            for machine, lock in engine.locks.items()
        },
    }


def engines_for(catalogue: Catalogue, recipes: Iterable[Recipe]) -> list[dict[str, Any]]:
    """The engines that recipes need: those with the same patches share one."""
    wanted = dict.fromkeys((recipe.engine, tuple(recipe.patch_names())) for recipe in recipes)
    return [engine_variables(catalogue, name, patches) for name, patches in wanted]


def tool_variables(catalogue: Catalogue, name: str) -> dict[str, Any]:
    """A tool's version and wheels."""
    found: dict[str, Any] = msgspec.to_builtins(catalogue.tool(name))
    return found
