"""`sparkops weights`: checkpoints, fetched once and copied from node to node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sparkops.cli.options import Changing, Globals, changing, target, with_globals

if TYPE_CHECKING:
    from sparkops.cli.run import Workplace


@click.group()
@with_globals
def weights(given: Globals) -> None:
    """Get checkpoints onto nodes. MODEL is a recipe, ORG/NAME[@REVISION] on a hub, or a folder in models_dir."""
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


@weights.command()
@click.argument("folder", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path))
@target
@changing
@with_globals
def push(given: Globals, folder: Path, pattern: str | None, all_nodes: bool, how: Changing) -> int:
    """Bring the checkpoint in DIR, here, to one node, and copy it from there to the others."""
    from sparkops.cli.run import Workplace, run
    from sparkops.errors import InputError

    top = folder.resolve()
    paths = sorted(path for path in top.rglob("*") if path.is_file() and not _hidden(path.relative_to(top)))
    if not any(path.suffix == ".safetensors" for path in paths):
        raise InputError("there is no *.safetensors file in it", where=str(folder))
    place = Workplace(given, "weights-push")
    values = {
        "weights_folder": _folder(top.name),
        "weights_names": [path.relative_to(top).as_posix() for path in paths],
        "weights_files": [str(path) for path in paths],
        **transfer(),
    }
    return run(place, place.pattern(pattern, all_nodes), how, values)


@weights.command()
@click.argument("model")
@target
@changing
@with_globals
def verify(given: Globals, model: str, pattern: str | None, all_nodes: bool, how: Changing) -> int:
    """Read MODEL whole on each node, and fail where a byte is another than it was when it came."""
    from sparkops.cli.run import Workplace, run

    place = Workplace(given, "weights-verify")
    return run(place, place.pattern(pattern, all_nodes), how, _named(place, model))


@weights.command()
@target
@click.option("--model", metavar="MODEL", help="Only this one.")
@click.option("--adopted", is_flag=True, help="Also those that were there before sparkops.")
@changing
@with_globals
def prune(given: Globals, pattern: str | None, all_nodes: bool, model: str | None, adopted: bool, how: Changing) -> int:
    """Remove the weights that sparkops put there and no release serves."""
    from sparkops.cli.run import Workplace, run

    place = Workplace(given, "weights-prune")
    only = _named(place, model)["weights_folder"] if model else ""
    values = {"weights_only": only, "weights_adopted": adopted}
    return run(place, place.pattern(pattern, all_nodes), how, values)


@weights.command("list")
@target
@with_globals
def list_(given: Globals, pattern: str | None, all_nodes: bool) -> int:
    """Show the checkpoints on each node: size, whether whole, where from, served by. All nodes without a PATTERN."""
    import json

    from sparkops.cli.collect import collect
    from sparkops.cli.run import Workplace
    from sparkops.cli.table import table

    place = Workplace(given, "weights-list")
    found, code = collect(place, place.pattern(pattern, all_nodes or pattern is None), {})
    if given.as_json:
        document = {
            name: {**one.results.get("weights_list", {}), "trouble": one.trouble or None} for name, one in found.items()
        }
        click.echo(json.dumps(document, indent=2))
        return code
    rows = []
    for name, one in found.items():
        listed = one.results.get("weights_list", {}).get("checkpoints", [])
        rows += [row(name, checkpoint) for checkpoint in listed] or [[name, one.trouble or "none", *[""] * 5]]
    click.echo(table(("node", "weights", "GB", "state", "content", "from", "served by"), rows))
    return code


def row(node: str, one: Mapping[str, Any]) -> list[str]:
    """A checkpoint's line of the table."""
    state = "whole" if one["recorded"] else "not verified"
    if not one["present"]:
        state = f"{one['staged'] / 1e9:.1f} GB on the way" if one["staged"] else f"bad: {', '.join(one['problems'])}"
    size = f"{(one['bytes'] or one['staged']) / 1e9:.1f}"
    origin = one["source"] or ("sparkops" if one["made"] else "there before")
    return [node, one["name"], size, state, one["content"], origin, ", ".join(one["used"])]


def transfer() -> dict[str, str]:
    """What this run's copies between nodes ask for."""
    import secrets

    return {"transfer_secret": secrets.token_hex(24)}


def _named(place: Workplace, model: str) -> dict[str, Any]:
    """MODEL's folder in models_dir, where on a hub it is, and whose files it shares."""
    from sparkops.checkpoint.origin import on_hub, target_folder
    from sparkops.node.hub import PREFIX

    if model in place.catalogue.names("recipes"):
        recipe = place.catalogue.recipe(model)
        shared = {"draft_folder": target_folder(place.catalogue, recipe)}
        where = on_hub(recipe.model_source or "", recipe.model_revision)
        return {"weights_folder": recipe.directory, **where, **shared}
    if "/" not in model:
        return {"weights_folder": _folder(model), **on_hub("")}
    found = on_hub(PREFIX + model.removeprefix(PREFIX))
    return {"weights_folder": found["weights_repo"].rpartition("/")[2], **found}


def _folder(name: str) -> str:
    from sparkops.errors import InputError

    if not name or name[0] in ".-" or not name.replace("-", "").replace("_", "").replace(".", "").isalnum():
        raise InputError(f"{name!r} is no recipe, no ORG/NAME and no folder's name")
    return name


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)
