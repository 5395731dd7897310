"""`sparkops rollback`: the release before."""

from __future__ import annotations

import click

from sparkops.cli.options import Changing, Globals, changing, target, with_drain, with_globals, with_service


@click.command()
@target
@click.option("--to", type=click.IntRange(1), metavar="N", help="This release (default: the one before).")
@with_service
@with_drain
@changing
@with_globals
def rollback(
    given: Globals,
    pattern: str | None,
    all_nodes: bool,
    to: int | None,
    service: str,
    drain: dict[str, float],
    how: Changing,
) -> int:
    """Serve an earlier release again. Its engine and files are there still: nothing is built or fetched."""
    from sparkops.cli.run import Workplace, run

    place = Workplace(given, "rollback")
    values = {"service": service, "to": to or "before", **drain}
    return run(place, place.pattern(pattern, all_nodes), how, values)
