"""The catalogue's recipes and engines as rows. A file that is wrong has a row too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sparkops.errors import InputError
from sparkops.node.venv import package_count
from sparkops.recipes.load import SHIPPED, Catalogue


def recipe_rows(catalogue: Catalogue) -> list[dict[str, Any]]:
    """name, from, file, error; and unless that is set description, model, engine, patches, extends and sizes."""
    return [_recipe_row(catalogue, name) for name in catalogue.names("recipes")]


def engine_rows(catalogue: Catalogue) -> list[dict[str, Any]]:
    """name, from, file, error; and unless that is set python, cuda, packages, locks and the recipes that use it."""
    users: dict[str, list[str]] = {}
    for row in recipe_rows(catalogue):
        users.setdefault(row.get("engine", ""), []).append(row["name"])
    return [_engine_row(catalogue, name, users.get(name, [])) for name in catalogue.names("engines")]


def _recipe_row(catalogue: Catalogue, name: str) -> dict[str, Any]:
    path = catalogue.path("recipes", name)
    row: dict[str, Any] = {"name": name, "from": _origin(path), "file": str(path), "error": None}
    try:
        loaded = catalogue.load_recipe(path)
    except InputError as error:
        return {**row, "error": str(error)}
    recipe = loaded.recipe
    return {
        **row,
        "description": recipe.description,
        "model": recipe.model,
        "engine": recipe.engine,
        "patches": recipe.patch_names(),
        "extends": list(loaded.extends),
        "max_model_len": recipe.max_model_len,
        "kv_cache_memory_bytes": recipe.kv_cache_memory_bytes,
        "port": recipe.port,
    }


def _engine_row(catalogue: Catalogue, name: str, users: list[str]) -> dict[str, Any]:
    path = catalogue.path("engines", name)
    row: dict[str, Any] = {"name": name, "from": _origin(path), "file": str(path), "error": None}
    try:
        engine = catalogue.engine(name)
    except InputError as error:
        return {**row, "error": str(error)}
    packages = {machine: package_count(Path(lock).read_bytes()) for machine, lock in engine.locks.items()}
    about = {"python": engine.python, "cuda": engine.expect_cuda, "packages": packages}
    return {**row, "version": engine.version, **about, "locks": engine.locks, "recipes": users}


def _origin(path: Path) -> str:
    return "shipped" if path.is_relative_to(SHIPPED) else str(path.parent.parent)
