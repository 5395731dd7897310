"""Finds and loads the catalogue: FOLDER/{recipes,engines,patches,tools}/NAME.yml, the first folder that has it wins."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from sparkops.errors import InputError, Position
from sparkops.project import yaml
from sparkops.recipes.checks import check_engine, check_patch, check_recipe
from sparkops.recipes.schema import Engine, PatchFile, Recipe, Tool

Kind = Literal["recipes", "engines", "patches", "tools"]
T = TypeVar("T", Recipe, Engine, PatchFile, Tool)

SHIPPED = Path(__file__).parent
SINGULAR = {"recipes": "recipe", "engines": "engine", "patches": "patch", "tools": "tool"}


class Catalogue:
    """The recipes, engines, patches and tools of `folders`, in order, and then the shipped ones."""

    def __init__(self, folders: Sequence[Path] = ()) -> None:
        self.folders = [*folders, SHIPPED]

    def names(self, kind: Kind) -> list[str]:
        """All names of a kind, sorted."""
        return sorted(self._paths(kind))

    def recipe(self, name: str) -> Recipe:
        """Raises InputError, as the others do: unknown (with near names), or wrong at a position."""
        recipe, document = self._load("recipes", name, Recipe)
        check_recipe(recipe, document)
        return recipe

    def engine(self, name: str) -> Engine:
        """An engine by `NAME-VERSION`; its locks are absolute paths of files that exist."""
        engine, document = self._load("engines", name, Engine)
        folder = self._paths("engines")[name].parent
        check_engine(engine, document, folder)
        locks = {machine: str(folder / lock) for machine, lock in engine.locks.items()}
        return msgspec.structs.replace(engine, locks=locks)

    def patch(self, name: str) -> PatchFile:
        """A patch by name."""
        patch, document = self._load("patches", name, PatchFile)
        check_patch(patch, document)
        return patch

    def tool(self, name: str) -> Tool:
        """A tool by name."""
        return self._load("tools", name, Tool)[0]

    def _paths(self, kind: Kind) -> dict[str, Path]:
        """name -> file; looked up in listings, so that no name reaches outside of the folders."""
        found: dict[str, Path] = {}
        for folder in self.folders:
            for path in sorted((folder / kind).glob("*.yml")):
                found.setdefault(path.stem, path)
        return found

    def _load(self, kind: Kind, name: str, schema: type[T]) -> tuple[T, Any]:
        paths = self._paths(kind)
        if name not in paths:
            near = difflib.get_close_matches(name, paths, n=3, cutoff=0.5)
            hint = f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(sorted(paths))}"
            raise InputError(f"there is no {SINGULAR[kind]} {name!r}", where=yaml.position(name), hint=hint)
        document = yaml.load(paths[name])
        try:
            loaded = msgspec.convert(plain(document), schema)
        except msgspec.ValidationError as error:
            raise refused(error, document, paths[name]) from None
        called = loaded.id if isinstance(loaded, Engine) else loaded.name
        if called != name:
            raise InputError(
                f"this file is {paths[name].name}, and what it describes is called {called!r}",
                where=yaml.position(document, "name") or str(paths[name]),
                hint=f"name the file {called}.yml",
            )
        return loaded, document


def plain(value: Any) -> Any:
    """A document as Python's own types, which is what msgspec takes."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return str(value) if isinstance(value, str) else value


def refused(error: msgspec.ValidationError, document: Any, path: Path) -> InputError:
    """msgspec's error at the position in the file that its path (`$.expect.log[0]`) means."""
    message, _, at = str(error).partition(" - at `")
    container, key, place = None, None, yaml.position(document)
    for name, index in re.findall(r"\.([A-Za-z_]\w*)|\[(\d+)\]", at):
        container = document
        key = name or int(index)
        place = yaml.position(container, key) or place
        document = document[key]
    hint = None
    unknown = re.search(r"unknown field `(.*)`", message)
    if unknown:
        place = yaml.key_position(document, unknown[1]) or place
        hint = "see the shipped files for the fields there are"
    if message.startswith("Expected `str`") and container is not None:
        written = yaml.original(container, key)
        hint = f'quote it: "{written}"' if written else None
    where: Position | str = place or str(path)
    return InputError(_lower(message) + (f" in {at.rstrip('`')[2:]}" if at else ""), where=where, hint=hint)


def _lower(message: str) -> str:
    return message[:1].lower() + message[1:]
