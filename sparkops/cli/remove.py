"""`sparkops remove`: takes away what sparkops put on nodes."""

from __future__ import annotations

import click

from sparkops.cli.options import Changing, Globals, changing, target, with_globals, with_service


@click.command()
@target
@with_service
@click.option("--engines", is_flag=True, help="The engines, uv and its cache too.")
@changing
@with_globals
def remove(given: Globals, pattern: str | None, all_nodes: bool, service: str, engines: bool, how: Changing) -> int:
    """Stop a service and remove its unit and releases. Weights and packages stay."""
    from sparkops.cli.run import Workplace, run

    place = Workplace(given, "remove")
    values = {"service": service, "remove_engines": engines}
    return run(place, place.pattern(pattern, all_nodes), how, values)
