"""`sparkops status`: how the served copies are."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from sparkops.cli.options import Changing, Globals, asking, target, with_any_service, with_globals

if TYPE_CHECKING:
    from rich.table import Table

    from sparkops.cli.collect import Found

# Seconds between two looks of --watch.
PAUSE = 2.0
UNKNOWN = "-"
COLUMNS = (
    "node", "service", "release", "recipe", "state", "up", "health", "running", "waiting", "tok/s", "KV", "free GiB",
    "W", "°C", "patches", "drift", "notes",
)  # fmt: skip


@click.command()
@target
@with_any_service
@click.option("--watch", is_flag=True, help="Look again until Ctrl-C.")
@asking
@with_globals
def status(
    given: Globals, pattern: str | None, all_nodes: bool, service: str | None, watch: bool, how: Changing
) -> int:
    """Show each node's copies: state, release, load, memory, and what was changed since. All nodes without a PATTERN.

    drift: what is not as the release has it (unit, run, env, a patch). "-" is not known; in --json it is null.
    """
    from sparkops.cli.collect import collect
    from sparkops.cli.run import Workplace

    place = Workplace(given, "status")
    chosen = place.pattern(pattern, all_nodes or pattern is None)
    values = {"service": service, "interval": 1.0}

    def look() -> tuple[dict[str, Found], int]:
        return collect(place, chosen, values, how)

    if watch:
        return _watch(look, given.as_json)
    found, code = look()
    if given.as_json:
        click.echo(json.dumps({name: document(one) for name, one in found.items()}, indent=2))
    else:
        _print(table(found))
    return code


def document(found: Found) -> dict[str, Any]:
    """What is known of a node, under the names of serving_status' result."""
    known = {key: value for key, value in found.results.get("serving_status", {}).items() if key != "state"}
    services = [{**one, "changed_since": changed_since(known, one)} for one in known.get("services", [])]
    return {**known, "services": services, "trouble": found.trouble or None}


def rows(name: str, found: Found, now: float) -> list[list[str]]:
    """A node's lines of the table: one for each copy."""
    known = found.results.get("serving_status", {})
    blank = [UNKNOWN] * (len(COLUMNS) - 6)
    if "services" not in known:
        state = "unreachable" if found.trouble else "unknown"
        return [[name, UNKNOWN, UNKNOWN, UNKNOWN, state, *blank, found.trouble]]
    if not known["services"]:
        return [[name, UNKNOWN, UNKNOWN, UNKNOWN, "nothing deployed", *blank, *_beneath(known)]]
    return [_row(name, known, one, now) for one in known["services"]]


def _row(name: str, known: Mapping[str, Any], copy: Mapping[str, Any], now: float) -> list[str]:
    since, kv_use, available = copy["since"], copy["kv_use"], known["mem_available"]
    return [
        name,
        copy["service"],
        _text(copy["release"]),
        _text(copy["recipe"]),
        _text(copy["unit_state"]),
        UNKNOWN if since is None else _span(now - since),
        _text(copy["health"]),
        _figure(copy["running"], 0),
        _figure(copy["waiting"], 0),
        _figure(copy["tok_s"], 1),
        UNKNOWN if kv_use is None else f"{kv_use:.0%}",
        UNKNOWN if available is None else _figure(available / 2**30, 1),
        _figure(known["power_w"], 0),
        _figure(known["temperature_c"], 0),
        patches(copy["patches"]),
        UNKNOWN if copy["drift"] is None else ", ".join(copy["drift"]) or "none",
        "; ".join(notes(known, copy)),
    ]


def patches(states: Mapping[str, str] | None) -> str:
    """How many of an engine's patches are in it; the others are named as drift."""
    if states is None:
        return UNKNOWN
    applied = sum(state == "applied" for state in states.values())
    return "none" if not states else f"{applied} of {len(states)}"


def notes(known: Mapping[str, Any], copy: Mapping[str, Any]) -> list[str]:
    """What a person should know of a copy beside its figures."""
    found = []
    if copy["release"] is not None and not copy["confirmed"]:
        found.append("not confirmed")
    if copy["back_from"]:
        found.append(f"went back from release {copy['back_from']}")
    found += [f"{what} {then} -> {now}" for what, (then, now) in (changed_since(known, copy) or {}).items()]
    return found + _beneath(known)


def changed_since(known: Mapping[str, Any], copy: Mapping[str, Any]) -> dict[str, list[str | None]] | None:
    """{"kernel" or "driver": [at the deploy, now]}, where they differ; None when the release has noted neither."""
    then = {what: copy[f"{what}_then"] for what in ("kernel", "driver")}
    if not any(then.values()):
        return None
    return {what: [old, known[what]] for what, old in then.items() if old is not None and old != known[what]}


def _beneath(known: Mapping[str, Any]) -> list[str]:
    return ["reboot pending"] if known["reboot_pending"] else []


def table(found: Mapping[str, Found]) -> Table:
    """All nodes."""
    from rich.table import Table

    drawn = Table(*COLUMNS, box=None, pad_edge=False)
    for name, one in found.items():
        for row in rows(name, one, time.time()):
            drawn.add_row(*row)
    return drawn


def _print(drawn: Table) -> None:
    from rich.console import Console

    console = Console()
    # In a pipe there is no width to keep to.
    (console if console.is_terminal else Console(width=300)).print(drawn)


def _watch(look: Callable[[], tuple[dict[str, Found], int]], as_json: bool) -> int:
    """Look until Ctrl-C; with --json each look is a line."""
    from rich.console import Console
    from rich.live import Live

    with Live(auto_refresh=False, console=Console(quiet=as_json)) as live:
        while True:
            found, code = look()
            if code == 130:
                return code
            if as_json:
                click.echo(json.dumps({name: document(one) for name, one in found.items()}))
            live.update(table(found), refresh=True)
            time.sleep(PAUSE)


def _span(seconds: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"


def _figure(value: float | None, digits: int) -> str:
    return UNKNOWN if value is None else f"{value:.{digits}f}"


def _text(value: object) -> str:
    return UNKNOWN if value is None else str(value)
