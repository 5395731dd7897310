"""`sparkops restart`: a served copy's life."""

from __future__ import annotations

import click

from sparkops.cli.deploy import SERVICE
from sparkops.cli.options import Changing, Globals, changing, target, with_globals


@click.command()
@target
@click.option("--service", default=SERVICE, show_default=True, metavar="NAME", help="Which of a node's services.")
@changing
@with_globals
def restart(given: Globals, pattern: str | None, all_nodes: bool, service: str, how: Changing) -> int:
    """Restart a served copy, and wait until it answers."""
    from sparkops.cli.run import Workplace, run

    place = Workplace(given, "service")
    return run(place, place.pattern(pattern, all_nodes), how, {"service": service, "state": "restarted"})
