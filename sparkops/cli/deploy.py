"""`sparkops deploy`: every node serves its own copy of a recipe."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import click

from sparkops.cli.options import Changing, Globals, changing, target, with_drain, with_globals, with_service
from sparkops.errors import InputError

if TYPE_CHECKING:
    from sparkops.runner.batch import Budget

# What of a recipe the inventory and -e may say too.
HONOURED = frozenset({"host", "port", "model_source", "draft_target", "env"})
# One node proves the release; then all others at once.
CANARY = ["1", "100%"]
# A number of nodes, or a share of them.
AMOUNT = re.compile(r"(?P<number>\d{1,6})(?P<percent>%?)", re.ASCII)


def _amount(text: str) -> tuple[int, bool] | None:
    """A number and whether it is a percentage; None when it is neither, or more than 100%."""
    found = AMOUNT.fullmatch(text.strip())
    if not found or (found["percent"] and int(found["number"]) > 100):
        return None
    return int(found["number"]), bool(found["percent"])


def _sizes(ctx: click.Context, param: click.Parameter, value: str | None) -> list[str]:
    """The batches' sizes as a play's `serial` has them."""
    if value is None:
        return CANARY
    sizes = [size.strip() for size in value.split(",")]
    for size in sizes:
        # A batch of none: _amount gives (0, ...).
        if not (_amount(size) or (0,))[0]:
            words = f"{size[:40]!r} is no size of a batch: a number of nodes from 1, or a percentage from 1% to 100%"
            raise click.BadParameter(f"{words}; several as in 1,50%", ctx, param)
    return sizes


def _budget(ctx: click.Context, param: click.Parameter, value: str | None) -> Budget | None:
    """How many nodes may fail."""
    from sparkops.runner.batch import Budget

    if value is None:
        return None
    if (found := _amount(value)) is None:
        raise click.BadParameter(f"{value[:40]!r} is neither a number of nodes nor a percentage up to 100%", ctx, param)
    return Budget(*found)


@click.command()
@click.argument("recipe")
@target
@with_service
@click.option(
    "--serial", metavar="SIZES", callback=_sizes, help="Batches: 1,50% or 2 (default: one node, then all others)."
)
@click.option(
    "--max-fail",
    metavar="N|PERCENT",
    callback=_budget,
    help="No more batches once more than N nodes, or than PERCENT of a batch, have failed (always: a whole batch).",
)
@with_drain
@changing
@with_globals
def deploy(
    given: Globals,
    recipe: str,
    pattern: str | None,
    all_nodes: bool,
    service: str,
    serial: list[str],
    max_fail: Budget | None,
    drain: dict[str, float],
    how: Changing,
) -> int:
    """Make every node serve its own copy of RECIPE; a service that serves another one changes over."""
    from sparkops.checkpoint.origin import weights_variables
    from sparkops.cli.extra import variables
    from sparkops.cli.preflight import Gathered
    from sparkops.cli.run import Workplace, about, run
    from sparkops.cli.weights import transfer
    from sparkops.recipes.variables import engine_locks, engine_variables, hub_client_variables, recipe_variables
    from sparkops.serving.command import environment, serve_args, shutdown_timeout

    place = Workplace(given, "deploy")
    found = place.catalogue.recipe(recipe)
    extra = variables(how.extra)
    origin = weights_variables(place.catalogue, found, extra.get("model_source"), extra.get("draft_target"))
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
        **origin,
        "hub_client": hub_client_variables(place.catalogue),
        **transfer(),
        "about": about(),
        "batches": serial,
    }
    refuse(extra, values, recipe)
    return run(place, place.pattern(pattern, all_nodes), how, {**values, **drain}, through=Gathered, budget=max_fail)


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
