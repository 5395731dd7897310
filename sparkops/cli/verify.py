"""`sparkops verify`: whether served copies are what was deployed, and serve; also after a reboot."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from sparkops.cli.options import Changing, Globals, asking, target, with_globals, with_service
from sparkops.errors import InputError

if TYPE_CHECKING:
    from sparkops.cli.collect import Found
    from sparkops.cli.run import Workplace
    from sparkops.serving.verification import Check

# Seconds in which a copy that runs must give its token.
PATIENCE = 60
HEAD = ("node", "check", "state", "detail")
COLOURS = {"pass": "green", "fail": "red", "unknown": "yellow"}


@click.command()
@target
@with_service
@click.option("--reboot", is_flag=True, help="Reboot the nodes first, one at a time; the first that fails is the last.")
@click.option("--yes", is_flag=True, help="Reboot without asking.")
@asking
@with_globals
def verify(
    given: Globals, pattern: str | None, all_nodes: bool, service: str, reboot: bool, yes: bool, how: Changing
) -> int:
    """Check copies against their release: unit, files, engine, patches, checkpoint, a generated token, log lines.

    All nodes without a PATTERN. Nothing is changed, but for --reboot. The exit code is 1 when a check fails.
    """
    from sparkops.cli.run import Workplace

    place = Workplace(given, "verify")
    chosen = place.pattern(pattern, all_nodes or (pattern is None and not reboot))
    if reboot:
        names = [host.name for host in place.inventory.select(chosen, how.limit)]
        _confirm(names, yes)
        known, code = _rebooted(place, names, service, how)
    else:
        known, code = _verified(place, chosen, service, how, PATIENCE)
    if code in (0, 4) and any(one.state == "fail" for rows in known.values() for one in rows):
        # As in doctor: a failure goes before a node that could not be reached, and behind an interrupt.
        code = 1
    if given.as_json:
        nodes = {name: {"checks": [vars(one) for one in rows]} for name, rows in known.items()}
        click.echo(json.dumps({"nodes": nodes, "exit_code": code}, indent=2))
    else:
        click.echo("\n".join(lines(known)))
    return code


def _verified(
    place: Workplace, chosen: str, service: str, how: Changing, patience: float | None
) -> tuple[dict[str, list[Check]], int]:
    from sparkops.cli.collect import collect

    found, code = collect(place, chosen, {"service": service, "patience": patience}, how)
    return {name: rows(one) for name, one in found.items()}, code


def rows(found: Found) -> list[Check]:
    """A node's checks; one that could not be reached has one."""
    from sparkops.serving.verification import Answer, Check, checks

    answers = {
        module: Answer(str(result["state"]), found.said.get(module, ""), result)
        for module, result in found.results.items()
    }
    if "serving_drift" not in answers:
        return [Check("reached", "unknown", found.trouble or "nothing was found out")]
    return checks(answers)


def _rebooted(place: Workplace, names: list[str], service: str, how: Changing) -> tuple[dict[str, list[Check]], int]:
    from sparkops.cli.reboot import reboot
    from sparkops.serving.verification import Check

    known: dict[str, list[Check]] = {}
    code = 0
    for name in names:
        if code or any(one.state == "fail" for checks in known.values() for one in checks):
            known[name] = [Check("reboot", "unknown", "not rebooted: the node before has failed")]
            continue
        click.echo(f"{name}: rebooting", err=True)
        begun = time.monotonic()
        why, code = reboot(place.given, name, how)
        if why:
            known[name] = [Check("reboot", "fail", why)]
            continue
        took = f"back after {time.monotonic() - begun:.0f} s"
        click.echo(f"{name}: {took}", err=True)
        found, code = _verified(place, name, service, how, None)
        known[name] = [Check("reboot", "pass", took), *found[name]]
    return known, code


def _confirm(names: list[str], yes: bool) -> None:
    """Raises InputError where nobody can be asked, click.Abort at a no."""
    text = f"Reboot {', '.join(names)}, one after the other?"
    if yes:
        return
    if not sys.stdin.isatty():
        raise InputError(f"verify --reboot would ask: {text}", hint="there is no terminal to ask on; give --yes")
    click.confirm(text, abort=True, err=True)


def lines(known: dict[str, list[Check]]) -> Iterator[str]:
    """The table; the state in its colour."""
    from sparkops.cli.doctor import printable
    from sparkops.cli.table import table

    told = [[name, one.check, one.state, printable(one.detail)] for name, rows in known.items() for one in rows]
    head, *drawn = table(HEAD, told).splitlines()
    yield head
    for line, row in zip(drawn, told, strict=True):
        before, state, after = line.partition(f"  {row[2]}")
        yield before + click.style(state, fg=COLOURS[row[2]]) + after
