"""`sparkops start`, `stop` and `restart`: a served copy's life."""

from __future__ import annotations

from typing import Any

import click

from sparkops.cli.options import Changing, Globals, changing, target, with_drain, with_globals, with_service


@click.command()
@target
@with_service
@changing
@with_globals
def start(given: Globals, pattern: str | None, all_nodes: bool, service: str, how: Changing) -> int:
    """Start a served copy, and wait until it answers."""
    return _bring(given, pattern, all_nodes, how, {"service": service, "state": "started"})


@click.command()
@target
@with_service
@with_drain
@changing
@with_globals
def stop(
    given: Globals, pattern: str | None, all_nodes: bool, service: str, drain: dict[str, float], how: Changing
) -> int:
    """Stop a served copy; requests in flight end first."""
    return _bring(given, pattern, all_nodes, how, {"service": service, "state": "stopped", **drain})


@click.command()
@target
@with_service
@with_drain
@changing
@with_globals
def restart(
    given: Globals, pattern: str | None, all_nodes: bool, service: str, drain: dict[str, float], how: Changing
) -> int:
    """Restart a served copy, and wait until it answers; requests in flight end first."""
    return _bring(given, pattern, all_nodes, how, {"service": service, "state": "restarted", **drain})


def _bring(given: Globals, pattern: str | None, all_nodes: bool, how: Changing, values: dict[str, Any]) -> int:
    from sparkops.cli.run import Workplace, run

    place = Workplace(given, "service")
    return run(place, place.pattern(pattern, all_nodes), how, values)
