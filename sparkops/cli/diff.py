"""`sparkops diff`: what differs between nodes that should be equal, and from what was deployed."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from sparkops.cli.options import Changing, Globals, asking, target, with_globals, with_service

if TYPE_CHECKING:
    from sparkops.serving.differences import Difference


@click.command()
@target
@with_service
@asking
@with_globals
def diff(given: Globals, pattern: str | None, all_nodes: bool, service: str, how: Changing) -> int:
    """Show what differs between nodes: driver, kernel, engine, patches, checkpoint, unit, command, environment; and
    what was edited on a node since its deploy. All nodes without a PATTERN; values of the environment are not shown.

    The exit code is 1 when something differs, as diff's own.
    """
    from sparkops.cli.collect import collect, tell_trouble
    from sparkops.cli.run import Workplace
    from sparkops.serving.differences import differences

    place = Workplace(given, "diff")
    values = {"service": service, "salt": secrets.token_hex(16)}
    found, code = collect(place, place.pattern(pattern, all_nodes or pattern is None), values, how)
    results = {name: one.results.get("serving_drift", {}) for name, one in found.items()}
    items = {name: result["items"] for name, result in results.items() if "items" in result}
    drift = {name: results[name]["drift"] for name in items}
    differing = differences(items)
    if code in (0, 4) and (differing or any(drift.values())):
        # As in doctor: what was found goes before a node that could not be reached, and behind an interrupt.
        code = 1
    if given.as_json:
        trouble = {name: one.trouble or None for name, one in found.items()}
        click.echo(json.dumps({**document(differing, drift), "trouble": trouble, "exit_code": code}, indent=2))
        return code
    click.echo("\n".join(lines(differing, drift)))
    tell_trouble(found)
    return code


def document(differing: list[Difference], drift: Mapping[str, list[str] | None]) -> dict[str, Any]:
    """The JSON document's own part; `drift` is null where it is not known."""
    from dataclasses import asdict

    return {"nodes": list(drift), "differences": [asdict(one) for one in differing], "drift": dict(drift)}


def lines(differing: list[Difference], drift: Mapping[str, list[str] | None]) -> Iterator[str]:
    """What is printed: each differing item with its values, then what was edited where."""
    for one in differing:
        yield one.item
        width = max(len(told(side.value)) for side in one.sides)
        for side in one.sides:
            yield f"  {told(side.value):<{width}}  {', '.join(side.nodes)}"
    edited = {name: edits for name, edits in drift.items() if edits}
    if edited:
        yield "edited since the deploy"
        wide = max(map(len, edited))
        yield from (f"  {name:<{wide}}  {', '.join(edits)}" for name, edits in edited.items())
    if not differing and not edited:
        yield f"no differences ({len(drift)} node{'' if len(drift) == 1 else 's'})"


def told(value: str | None) -> str:
    """A value for a line: what a node says may hold anything."""
    text = "-" if value is None else value or '""'
    return "".join(one if one.isprintable() else " " for one in text)
