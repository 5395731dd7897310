"""What playbooks see of the catalogue: recipes, engines and tools as plain variables."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from sparkops.recipes.identity import engine_id
from sparkops.recipes.load import Catalogue
from sparkops.recipes.locking import pins
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
        "disk_gb": engine.disk_gb,
        "probe": engine.probe,
        "files": engine.files,
        "patches": named,
        "by_architecture": {
            machine: {"id": engine_id(engine, Path(lock).read_bytes(), files), "lock": lock}
            for machine, lock in engine.locks.items()
        },
    }


def engine_locks(engine: dict[str, Any]) -> dict[str, Any]:
    """Of `engine_variables`, what a node is compared with, by architecture: `id`, the lock's sha256, its packages."""
    return {
        machine: {"id": built["id"], "lock": sha256(raw).hexdigest(), "packages": _pinned(raw.decode())}
        for machine, built in engine["by_architecture"].items()
        for raw in [Path(built["lock"]).read_bytes()]
    }


def _pinned(lock: str) -> list[str]:
    return [f"{name}=={version}" for name, version in pins(lock).items()]


def engines_for(catalogue: Catalogue, recipes: Iterable[Recipe]) -> list[dict[str, Any]]:
    """The engines that recipes need: those with the same patches share one."""
    wanted = dict.fromkeys((recipe.engine, tuple(recipe.patch_names())) for recipe in recipes)
    return [engine_variables(catalogue, name, patches) for name, patches in wanted]


def tool_variables(catalogue: Catalogue, name: str) -> dict[str, Any]:
    """A tool's version and wheels."""
    found: dict[str, Any] = msgspec.to_builtins(catalogue.tool(name))
    return found


def hub_client_variables(catalogue: Catalogue) -> dict[str, str]:
    """Hugging Face's client: `lock` (tools/hf.lock, a path here) and `id`, the name of its environment on a node."""
    lock = next(path for folder in catalogue.folders if (path := folder / "tools" / "hf.lock").exists())
    return {"lock": str(lock), "id": f"hf-{sha256(lock.read_bytes()).hexdigest()[:12]}"}
