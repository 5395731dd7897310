"""`sparkops releases`: what was deployed on nodes, and when."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from sparkops.cli.options import Changing, Globals, asking, target, with_any_service, with_globals

if TYPE_CHECKING:
    from sparkops.cli.collect import Found

HEAD = ("node", "service", "release", "state", "recipe", "engine", "who", "when", "verb")


@click.command()
@target
@with_any_service
@asking
@with_globals
def releases(given: Globals, pattern: str | None, all_nodes: bool, service: str | None, how: Changing) -> int:
    """List each node's releases, newest first; * is the current one. All nodes without a PATTERN.

    `rollback --to N` serves one of them again.
    """
    from sparkops.cli.collect import collect, tell_trouble
    from sparkops.cli.run import Workplace
    from sparkops.cli.table import table

    place = Workplace(given, "releases")
    found, code = collect(place, place.pattern(pattern, all_nodes or pattern is None), {"service": service}, how)
    if given.as_json:
        click.echo(json.dumps({name: document(one) for name, one in found.items()}, indent=2))
        return code
    rows = [row(name, one) for name, node in found.items() for one in document(node)["releases"] or []]
    click.echo(table(HEAD, rows) if rows else "no releases")
    tell_trouble(found)
    return code


def document(found: Found) -> dict[str, Any]:
    """A node's releases, as release_list gives them; None where they are not known."""
    known = found.results.get("release_list", {})
    return {"releases": known.get("releases"), "trouble": found.trouble or None}


def row(name: str, one: Mapping[str, Any]) -> list[str]:
    """A release's line of the table."""
    number = f"{one['release']}{' *' if one['current'] else ''}"
    told = (one["recipe"], one["engine"], one["who"], one["when"], (one["verb"] or "").removeprefix("sparkops "))
    return [name, one["service"], number, one["state"], *(str(text or "-") for text in told)]
