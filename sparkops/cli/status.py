"""`sparkops status`: how the served copies are."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from sparkops.cli.options import Globals, target, with_globals, with_service

if TYPE_CHECKING:
    from rich.table import Table

    from sparkops.cli.collect import Found

# Seconds between two looks of --watch.
PAUSE = 2.0
COLUMNS = (
    "node", "state", "up", "release", "recipe", "health", "running", "waiting", "tok/s", "KV", "free GiB", "W", "°C",
    "notes",
)  # fmt: skip


@click.command()
@target
@with_service
@click.option("--watch", is_flag=True, help="Look again until Ctrl-C.")
@with_globals
def status(given: Globals, pattern: str | None, all_nodes: bool, service: str, watch: bool) -> int:
    """Show each node's copy: state, release, health, load, memory. All nodes without a PATTERN."""
    from sparkops.cli.collect import collect
    from sparkops.cli.run import Workplace

    place = Workplace(given, "status")
    chosen = place.pattern(pattern, all_nodes or pattern is None)
    values = {"service": service, "interval": 1.0}
    if watch and not given.as_json:
        return _watch(lambda: collect(place, chosen, values))
    found, code = collect(place, chosen, values)
    if given.as_json:
        click.echo(json.dumps({name: document(one) for name, one in found.items()}, indent=2))
    else:
        _print(table(found))
    return code


def document(found: Found) -> dict[str, Any]:
    """What is known of a node, under the names of serving_status' result."""
    known = {key: value for key, value in found.results.get("serving_status", {}).items() if key != "state"}
    return {**known, "trouble": found.trouble or None}


def row(name: str, found: Found, now: float) -> list[str]:
    """A node's line of the table."""
    known = found.results.get("serving_status", {})
    if "release" not in known:
        return [name, "unreachable" if found.trouble else "unknown", *[""] * 11, found.trouble]
    since = known["since"]
    return [
        name,
        str(known["unit_state"]),
        "" if since is None else _span(now - since),
        "" if known["release"] is None else str(known["release"]),
        known["recipe"] or "",
        "" if known["health"] is None else str(known["health"]),
        _figure(known["running"], 0),
        _figure(known["waiting"], 0),
        _figure(known["tok_s"], 1),
        "" if known["kv_use"] is None else f"{known['kv_use']:.0%}",
        _figure(known["mem_available"] and known["mem_available"] / 2**30, 1),
        _figure(known["power_w"], 0),
        _figure(known["temperature_c"], 0),
        "; ".join(notes(known)),
    ]


def notes(known: Mapping[str, Any]) -> list[str]:
    """What a person should know of a node beside its figures."""
    found = []
    if known["release"] is not None and not known["confirmed"]:
        found.append("on trial")
    if known["back_from"]:
        found.append(f"went back from release {known['back_from']}")
    if known["reboot_pending"]:
        found.append("reboot pending")
    return found


def table(found: Mapping[str, Found]) -> Table:
    """All nodes."""
    from rich.table import Table

    drawn = Table(*COLUMNS, box=None, pad_edge=False)
    for name, one in found.items():
        drawn.add_row(*row(name, one, time.time()))
    return drawn


def _print(drawn: Table) -> None:
    from rich.console import Console

    console = Console()
    # In a pipe there is no width to keep to.
    (console if console.is_terminal else Console(width=200)).print(drawn)


def _watch(look: Callable[[], tuple[dict[str, Found], int]]) -> int:
    from rich.live import Live

    with Live(auto_refresh=False) as live:
        while True:
            found, code = look()
            live.update(table(found), refresh=True)
            if code == 130:
                return code
            time.sleep(PAUSE)


def _span(seconds: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"


def _figure(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"
