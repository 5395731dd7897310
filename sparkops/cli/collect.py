"""Runs a read-only playbook for a verb that answers a question, and gives what its tasks found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import click

from sparkops.cli.options import QUIET, Changing
from sparkops.cli.run import Workplace, prepare
from sparkops.events import Event, HostEnd, Progress, Task


@dataclass
class Found:
    """A host's answers: results and messages by module name, and why there are no more of them, if so."""

    results: dict[str, dict[str, Any]] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)
    trouble: str = ""


def collect(
    place: Workplace,
    pattern: str,
    values: Mapping[str, Any],
    how: Changing = QUIET,
    lease: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> tuple[dict[str, Found], int]:
    """(what each host found, the run's exit code). Raises InputError.

    Without `lease` it only looks. progress: told how far long tasks are.
    """
    found: dict[str, Found] = {}

    def emit(event: Event) -> None:
        if isinstance(event, Task) and event.state != "skipped":
            host = found.setdefault(event.host, Found())
            host.results[event.module] = {**event.result, "state": event.state}
            host.said[event.module] = event.msg
            if event.state == "failed":
                host.trouble = event.msg
        elif isinstance(event, Progress) and progress is not None:
            progress(event)
        elif isinstance(event, HostEnd) and event.state != "ok":
            host = found.setdefault(event.host, Found())
            host.trouble = host.trouble or event.msg

    prepared = prepare(place, pattern, how, values, emit, lease=lease)
    prepared.check()
    code = prepared.execute()
    return {name: found.get(name, Found()) for name in prepared.tally.counts}, code


def tell_trouble(found: Mapping[str, Found]) -> None:
    """Name on stderr the hosts that gave no answer, and why."""
    for name, one in found.items():
        if one.trouble:
            click.echo(f"{name}: {one.trouble}", err=True)
