"""`sparkops provision`: a node ready to serve."""

from __future__ import annotations

import click

from sparkops.cli.options import Changing, Globals, changing, target, with_globals


@click.command()
@target
@click.option("--recipe", "recipes", multiple=True, metavar="RECIPE", help="Only the engines that these need.")
@changing
@with_globals
def provision(given: Globals, pattern: str | None, all_nodes: bool, recipes: tuple[str, ...], how: Changing) -> int:
    """Make nodes ready to serve: driver check, packages, uv, engines, folders."""
    from sparkops.cli.run import Workplace, run
    from sparkops.recipes.variables import engines_for, tool_variables

    place = Workplace(given, "provision")
    catalogue = place.catalogue
    chosen = [catalogue.recipe(name) for name in recipes or catalogue.names("recipes")]
    values = {"engines": engines_for(catalogue, chosen), "uv": tool_variables(catalogue, "uv")}
    return run(place, place.pattern(pattern, all_nodes), how, values)
