"""`sparkops doctor`: what is wrong with served copies: cause, evidence and cure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from sparkops.cli.options import Changing, Globals, changing, target, with_globals, with_service

if TYPE_CHECKING:
    from sparkops.cli.collect import Found
    from sparkops.serving.diagnosis import Diagnosis
    from sparkops.serving.triage import Finding

COLOURS = {"failure": "red", "warning": "yellow", "hint": "cyan"}
WIDTH = 10


@click.command()
@target
@with_service
@changing
@with_globals
def doctor(given: Globals, pattern: str | None, all_nodes: bool, service: str, how: Changing) -> int:
    """Say what is wrong with served copies, and what to do. All nodes without a PATTERN; nothing is changed.

    The exit code is 1 when a node has a failure.
    """
    from sparkops.cli.collect import collect
    from sparkops.cli.run import Workplace
    from sparkops.serving.failures import load

    place = Workplace(given, "doctor")
    failures = load()
    found, code = collect(place, place.pattern(pattern, all_nodes or pattern is None), {"service": service}, how)
    diagnoses = {name: judge(one, failures) for name, one in found.items()}
    if code in (0, 4) and any(one is not None and one.failing for one in diagnoses.values()):
        # A failure goes before a node that could not be reached, and behind an interrupt.
        code = 1
    if given.as_json:
        nodes = {name: document(found[name], one) for name, one in diagnoses.items()}
        click.echo(json.dumps({"nodes": nodes, "exit_code": code}, indent=2))
        return code
    for name, one in diagnoses.items():
        click.echo("\n".join(lines(name, found[name], one)))
    return code


def judge(found: Found, failures: Any) -> Diagnosis | None:
    """What a node's evidence means; None when there is none."""
    from sparkops.serving.diagnosis import diagnose
    from sparkops.serving.evidence import Evidence

    result = found.results.get("serving_evidence", {})
    return diagnose(Evidence.of(result), failures) if "unit" in result else None


def document(found: Found, diagnosis: Diagnosis | None) -> dict[str, Any]:
    """A node's part of the JSON document."""
    from msgspec import to_builtins

    if diagnosis is None:
        return {"state": "unknown", "summary": "", "findings": [], "trouble": found.trouble or None}
    said: dict[str, Any] = to_builtins(diagnosis)
    return {**said, "trouble": found.trouble or None}


def lines(name: str, found: Found, diagnosis: Diagnosis | None) -> Iterator[str]:
    """What is printed of a node: one line, and the findings."""
    head = click.style(name, bold=True)
    if diagnosis is None:
        why = printable(found.trouble) or "no evidence was collected"
        yield f"{head}  {click.style('could not be examined:', fg='red')} {why}"
        return
    colour = {"serving": "green", "starting": "cyan", "failing": "red"}[diagnosis.state]
    yield f"{head}  {click.style(diagnosis.state, fg=colour)}  {printable(diagnosis.summary)}"
    for finding in diagnosis.findings:
        yield from told(finding)


def told(finding: Finding) -> Iterator[str]:
    """A finding: what, why, the lines that show it, what to do."""
    mark = click.style(f"{finding.severity}:", fg=COLOURS[finding.severity], bold=True)
    yield f"  {mark} {finding.title} [{finding.id}]"
    yield f"    {'cause':<{WIDTH}}{printable(finding.cause)}"
    for index, line in enumerate(finding.evidence):
        yield f"    {'' if index else 'evidence':<{WIDTH}}> {printable(line)}"
    yield f"    {'cure':<{WIDTH}}{printable(finding.cure)}"


def printable(text: str) -> str:
    """A node's words for a terminal: what it has logged may hold control characters."""
    return "".join(one if one.isprintable() else " " for one in text).strip()
