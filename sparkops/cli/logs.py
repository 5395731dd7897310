"""`sparkops logs`: what the served copies have logged, merged."""

from __future__ import annotations

import json

import click

from sparkops.cli.options import Changing, Globals, changing, target, with_globals, with_service

COLOURS = ("cyan", "yellow", "green", "magenta", "blue", "bright_red")


@click.command()
@target
@click.option("--lines", default=100, show_default=True, type=click.IntRange(1), help="At most these of each node.")
@click.option("--since", metavar="TIME", help='As journalctl takes it: "10 min ago", "2026-11-30 12:00".')
@with_service
@changing
@with_globals
def logs(
    given: Globals,
    pattern: str | None,
    all_nodes: bool,
    lines: int,
    since: str | None,
    service: str,
    how: Changing,
) -> int:
    """Show the journals of served copies, merged by time. All nodes without a PATTERN."""
    from sparkops.cli.collect import collect
    from sparkops.cli.run import Workplace

    place = Workplace(given, "logs")
    values = {"service": service, "lines": lines, "since": since}
    found, code = collect(place, place.pattern(pattern, all_nodes or pattern is None), values, how)
    known = {name: one.results.get("journal", {}).get("lines", []) for name, one in found.items()}
    if given.as_json:
        click.echo(
            json.dumps({name: {"lines": known[name], "trouble": one.trouble or None} for name, one in found.items()})
        )
        return code
    colours = {name: COLOURS[at % len(COLOURS)] for at, name in enumerate(found)}
    for name, line in merged(known):
        click.echo(f"{click.style(name, fg=colours[name])}  {line}")
    for name, one in found.items():
        if one.trouble:
            click.echo(f"{name}: {one.trouble}", err=True)
    return code


def merged(lines: dict[str, list[str]]) -> list[tuple[str, str]]:
    """(host, line) of all hosts, by the time that each line begins with; lines of one host keep their order."""
    stamped = []
    for name, own in lines.items():
        stamp = ""
        for at, line in enumerate(own):
            # A line without a stamp belongs to the one above it.
            stamp = line.partition(" ")[0] if line[:4].isdigit() else stamp
            stamped.append((stamp, name, at, line))
    return [(name, line) for _, name, _, line in sorted(stamped, key=lambda one: one[:3])]
