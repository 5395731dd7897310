"""`sparkops logs`: what the served copies have logged, merged; -f goes on with what they log."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from sparkops.cli.options import Changing, Globals, asking, target, with_globals, with_service

if TYPE_CHECKING:
    from sparkops.cli.run import Workplace

# Lines of each node, when nothing else is said: without and with -f.
LINES, BEFORE = 100, 10


@click.command()
@target
@click.option(
    "-n", "--lines", type=click.IntRange(1), help=f"The last N of each node (default: {LINES}, -f: {BEFORE})."
)
@click.option("--since", metavar="TIME", help='As journalctl takes it: "10 min ago", "2026-11-30 12:00".')
@click.option("-g", "--grep", metavar="REGEX", help="Only lines that match (PCRE; all in lower case: any case).")
@click.option("-f", "--follow", is_flag=True, help="Go on with what is logged, until Ctrl-C.")
@with_service
@asking
@with_globals
def logs(
    given: Globals,
    pattern: str | None,
    all_nodes: bool,
    lines: int | None,
    since: str | None,
    grep: str | None,
    follow: bool,
    service: str,
    how: Changing,
) -> int:
    """Show the journals of served copies, merged by time. All nodes without a PATTERN.

    With --since all lines since then, unless -n says less. -f ends with exit code 130 at Ctrl-C; a node that goes away
    meanwhile is named, and the others go on. With --json it prints events, one a line.
    """
    from sparkops.cli.run import Workplace

    if follow and since is not None and lines is not None:
        raise click.UsageError("with -f, give --since or -n, not both")
    place = Workplace(given, "logs")
    chosen = place.pattern(pattern, all_nodes or pattern is None)
    count = lines if lines is not None or since is not None else BEFORE if follow else LINES
    values = {"service": service, "lines": count, "since": since, "grep": grep, "follow": follow}
    return (_follow if follow else _show)(place, chosen, values, how)


def _show(place: Workplace, chosen: str, values: Mapping[str, Any], how: Changing) -> int:
    from sparkops.cli.collect import collect, tell_trouble
    from sparkops.reporters.follow import Painter
    from sparkops.reporters.merging import Merger

    found, code = collect(place, chosen, values, how)
    known = {name: one.results.get("journal", {}).get("lines", []) for name, one in found.items()}
    if place.given.as_json:
        click.echo(
            json.dumps({name: {"lines": known[name], "trouble": one.trouble or None} for name, one in found.items()})
        )
        return code
    merger = Merger(0)
    for name, own in known.items():
        merger.add(name, own, 0)
    Painter(sys.stdout, list(found)).write(merger.rest())
    tell_trouble(found)
    return code


def _follow(place: Workplace, chosen: str, values: Mapping[str, Any], how: Changing) -> int:
    from sparkops.cli.run import prepare
    from sparkops.reporters.follow import FollowReporter
    from sparkops.reporters.json import JsonReporter

    hosts = [host.name for host in place.inventory.select(chosen, how.limit)]
    # None waits for another to end.
    how = replace(how, forks=max(len(hosts), 1))
    reporter = JsonReporter(sys.stdout) if place.given.as_json else FollowReporter(sys.stdout, hosts)
    with reporter:
        prepared = prepare(place, chosen, how, values, reporter, lease=False)
        prepared.check()
        code = prepared.execute()
    if isinstance(reporter, FollowReporter) and reporter.broken:
        raise BrokenPipeError
    return code
