"""`sparkops stop`: a served copy's life."""

from __future__ import annotations

import click

from sparkops.cli.deploy import SERVICE
from sparkops.cli.options import Changing, Globals, changing, target, with_globals


@click.command()
@target
@click.option("--service", default=SERVICE, show_default=True, metavar="NAME", help="Which of a node's services.")
@changing
@with_globals
def stop(given: Globals, pattern: str | None, all_nodes: bool, service: str, how: Changing) -> int:
    """Stop a served copy; requests in flight end first."""
    from sparkops.cli.run import Workplace, run

    place = Workplace(given, "service")
    return run(place, place.pattern(pattern, all_nodes), how, {"service": service, "state": "stopped"})
