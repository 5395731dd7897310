"""`sparkops deploy`: every node serves its own copy of a recipe."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import click

from sparkops.cli.options import Changing, Globals, changing, target, with_drain, with_globals, with_service
from sparkops.errors import InputError

# What of a recipe the inventory and -e may say too.
HONOURED = frozenset({"host", "port", "model_source", "env"})
# One node proves the release; then all others at once.
CANARY = [1, "100%"]


@click.command()
@click.argument("recipe")
@target
@with_service
@click.option("--serial", metavar="SIZES", help="Batches: 1,50% or 2 (default: one node, then all others).")
@with_drain
@changing
@with_globals
def deploy(
    given: Globals,
    recipe: str,
    pattern: str | None,
    all_nodes: bool,
    service: str,
    serial: str | None,
    drain: dict[str, float],
    how: Changing,
) -> int:
    """Make every node serve its own copy of RECIPE; a service that serves another one changes over."""
    from sparkops.cli.extra import variables
    from sparkops.cli.preflight import Gathered
    from sparkops.cli.run import Workplace, about, run
    from sparkops.recipes.variables import engine_locks, engine_variables, recipe_variables
    from sparkops.serving.command import environment, serve_args, shutdown_timeout

    place = Workplace(given, "deploy")
    found = place.catalogue.recipe(recipe)
    extra = variables(how.extra)
    source = found.source(extra.get("model_source"))
    engine = engine_variables(place.catalogue, found.engine, found.patch_names())
    values = {
        "recipe": recipe_variables(found),
        "recipe_folder": found.directory,
        "serve_args": serve_args(found),
        "serve_env": environment(found),
        "shutdown_timeout": shutdown_timeout(found),
        "engine": engine,
        "engine_locks": engine_locks(engine),
        "service": service,
        "model_source": source,
        "about": about(),
        "batches": [size.strip() for size in serial.split(",")] if serial else CANARY,
    }
    refuse(extra, values, recipe)
    return run(place, place.pattern(pattern, all_nodes), how, {**values, **drain}, through=Gathered)


def refuse(extra: Mapping[str, Any], values: Collection[str], recipe: str) -> None:
    """Raises InputError for what -e gives and a deploy would pass over, or be broken by."""
    from sparkops.recipes.fields import fields
    from sparkops.recipes.schema import Recipe

    for name in extra:
        if name in HONOURED:
            continue
        if name == "service":
            raise InputError("-e service: a service's name has an option of its own", hint="--service NAME")
        if name in values and name not in fields(Recipe):
            raise InputError(f"-e {name}: that is what the recipe {recipe} gives", hint="deploy another recipe")
        if name in fields(Recipe):
            hint = f"recipes/NAME.yml with `extends: {recipe}` and `{name}: ...`; then: sparkops deploy NAME"
            raise InputError(f"-e {name}: that is a field of the recipe, which -e does not change", hint=hint)
