"""Finds and loads the catalogue: FOLDER/{recipes,engines,patches,tools}/NAME.yml, the first folder that has it wins."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from sparkops.errors import InputError
from sparkops.project import yaml
from sparkops.recipes.checks import check_engine, check_patch, check_recipe
from sparkops.recipes.convert import convert
from sparkops.recipes.extends import resolve
from sparkops.recipes.schema import Engine, PatchFile, Recipe, Tool

Kind = Literal["recipes", "engines", "patches", "tools"]
T = TypeVar("T", Recipe, Engine, PatchFile, Tool)

SHIPPED = Path(__file__).parent
SINGULAR = {"recipes": "recipe", "engines": "engine", "patches": "patch", "tools": "tool"}


@dataclass(frozen=True)
class Loaded:
    """A recipe with its document, whose values know the file that each comes from.

    path: its own file. extends: the recipes that it is made of, the nearest first.
    """

    recipe: Recipe
    document: Any
    path: Path
    extends: Sequence[str]


class Catalogue:
    """The recipes, engines, patches and tools of `folders`, in order, and then the shipped ones."""

    def __init__(self, folders: Sequence[Path] = ()) -> None:
        self.folders = [*folders, SHIPPED]

    def names(self, kind: Kind) -> list[str]:
        """All names of a kind, sorted."""
        return sorted(self._paths(kind))

    def path(self, kind: Kind, name: str) -> Path:
        """The file of that name. Raises InputError with near names."""
        paths = self._paths(kind)
        if name not in paths:
            near = difflib.get_close_matches(name, paths, n=3, cutoff=0.5)
            hint = f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(sorted(paths))}"
            raise InputError(f"there is no {SINGULAR[kind]} {name!r}", where=yaml.position(name), hint=hint)
        return paths[name]

    def recipe(self, name: str) -> Recipe:
        """Raises InputError, as the others do: unknown (with near names), or wrong at a position."""
        return self.load_recipe(self.path("recipes", name)).recipe

    def load_recipe(self, path: Path) -> Loaded:
        """The recipe in a file, whichever folder that is in; what it extends is looked up here. Raises InputError."""
        written = yaml.load(path)
        document, extends = resolve(path.stem, written, lambda base: yaml.load(self.path("recipes", base)))
        recipe = convert(document, Recipe, path)
        _check_name(recipe.name, document, path)
        check_recipe(recipe, document)
        return Loaded(recipe, document, path, extends)

    def engine(self, name: str, locked: bool = True) -> Engine:
        """An engine by `NAME-VERSION`; its locks are absolute paths, of files that exist if it is to be `locked`."""
        engine, document, path = self._load("engines", name, Engine)
        _check_name(engine.id, document, path)
        check_engine(engine, document, path.parent, locked)
        locks = {machine: str(path.parent / lock) for machine, lock in engine.locks.items()}
        return msgspec.structs.replace(engine, locks=locks)

    def patch(self, name: str) -> PatchFile:
        """A patch by name."""
        patch, document, path = self._load("patches", name, PatchFile)
        _check_name(patch.name, document, path)
        check_patch(patch, document)
        return patch

    def tool(self, name: str) -> Tool:
        """A tool by name."""
        tool, document, path = self._load("tools", name, Tool)
        _check_name(tool.name, document, path)
        return tool

    def _paths(self, kind: Kind) -> dict[str, Path]:
        """name -> file; looked up in listings, so that no name reaches outside of the folders."""
        found: dict[str, Path] = {}
        for folder in self.folders:
            for path in sorted((folder / kind).glob("*.yml")):
                found.setdefault(path.stem, path)
        return found

    def _load(self, kind: Kind, name: str, schema: type[T]) -> tuple[T, Any, Path]:
        path = self.path(kind, name)
        document = yaml.load(path)
        return convert(document, schema, path), document, path


def _check_name(called: str, document: Any, path: Path) -> None:
    if called != path.stem:
        raise InputError(
            f"this file is {path.name}, and what it describes is called {called!r}",
            where=yaml.position(document, "name") or str(path),
            hint=f"name the file {called}.yml",
        )
