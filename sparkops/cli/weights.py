"""`sparkops weights`: checkpoints, fetched once and copied from node to node."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from sparkops.cli.options import Changing, Globals, changing, target, with_globals

if TYPE_CHECKING:
    from sparkops.cli.run import Workplace


@click.group()
@with_globals
def weights(given: Globals) -> None:
    """Get checkpoints onto nodes. MODEL is a recipe, ORG/NAME[@REVISION] on the hub, or a folder's name in models_dir."""
    click.get_current_context().find_root().obj = asdict(given)


@weights.command()
@click.argument("model")
@target
@changing
@with_globals
def pull(given: Globals, model: str, pattern: str | None, all_nodes: bool, how: Changing) -> int:
    """Fetch MODEL from the hub onto one of the nodes, unless one of them has it."""
    from sparkops.cli.run import Workplace, run
    from sparkops.errors import InputError
    from sparkops.recipes.variables import hub_client_variables

    place = Workplace(given, "weights-pull")
    named = _named(place, model)
    if not named["weights_repo"]:
        raise InputError(f"{model} is not on a hub", hint="write ORG/NAME, or bring it with: sparkops weights push DIR")
    client = hub_client_variables(place.catalogue)
    return run(place, place.pattern(pattern, all_nodes), how, {**named, "hub_client": client})


@weights.command()
@click.argument("model")
@target
@changing
@with_globals
def sync(given: Globals, model: str, pattern: str | None, all_nodes: bool, how: Changing) -> int:
    """Copy MODEL from the nodes that have it to those that lack it, each node serving one other at a time."""
    from sparkops.cli.run import Workplace, run

    place = Workplace(given, "weights-sync")
    return run(place, place.pattern(pattern, all_nodes), how, {**_named(place, model), **transfer()})


def transfer() -> dict[str, str]:
    """What this run's copies between nodes ask for."""
    import secrets

    return {"transfer_secret": secrets.token_hex(24)}


def _named(place: Workplace, model: str) -> dict[str, Any]:
    """The folder in models_dir, and the repository and revision on a hub ("" where there is none)."""
    from sparkops.checkpoint.sources import HUB, Repository

    if model in place.catalogue.names("recipes"):
        recipe = place.catalogue.recipe(model)
        source, folder = recipe.model_source or "", recipe.directory
        if not source.startswith(HUB):
            return {"weights_folder": folder, "weights_repo": "", "weights_revision": ""}
        found = Repository.of(source)
        revision = recipe.model_revision or found.revision
        return {"weights_folder": folder, "weights_repo": found.name, "weights_revision": revision}
    if "/" not in model.removeprefix(HUB):
        return {"weights_folder": _folder(model), "weights_repo": "", "weights_revision": ""}
    found = Repository.of(model)
    return {
        "weights_folder": found.name.rpartition("/")[2],
        "weights_repo": found.name,
        "weights_revision": found.revision,
    }


def _folder(name: str) -> str:
    from sparkops.errors import InputError

    if not name or name[0] in ".-" or not name.replace("-", "").replace("_", "").replace(".", "").isalnum():
        raise InputError(f"{name!r} is no recipe, no ORG/NAME and no folder's name")
    return name
