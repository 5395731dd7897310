"""`sparkops deploy`: every node serves its own copy of a recipe."""

from __future__ import annotations

import click

from sparkops.cli.options import Changing, Globals, changing, target, with_globals, with_service

# One node proves the release; then all others at once.
CANARY = [1, "100%"]


@click.command()
@click.argument("recipe")
@target
@with_service
@click.option("--serial", metavar="SIZES", help="Batches: 1,50% or 2 (default: one node, then all others).")
@changing
@with_globals
def deploy(
    given: Globals, recipe: str, pattern: str | None, all_nodes: bool, service: str, serial: str | None, how: Changing
) -> int:
    """Make every node serve its own copy of RECIPE; a service that serves another one changes over."""
    from sparkops.cli.extra import variables
    from sparkops.cli.run import Workplace, about, run
    from sparkops.cli.weights import on_hub, transfer
    from sparkops.recipes.variables import engine_variables, hub_client_variables, recipe_variables
    from sparkops.serving.command import environment, serve_args

    place = Workplace(given, "deploy")
    found = place.catalogue.recipe(recipe)
    source = found.source(variables(how.extra).get("model_source"))
    values = {
        "recipe": recipe_variables(found),
        "recipe_folder": found.directory,
        "serve_args": serve_args(found),
        "serve_env": environment(found),
        "engine": engine_variables(place.catalogue, found.engine, found.patch_names()),
        "service": service,
        "model_source": source,
        **on_hub(source, found.model_revision if source == found.model_source else None),
        "hub_client": hub_client_variables(place.catalogue),
        **transfer(),
        "about": about(),
        "batches": [size.strip() for size in serial.split(",")] if serial else CANARY,
    }
    return run(place, place.pattern(pattern, all_nodes), how, values)
