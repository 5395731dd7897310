"""`sparkops start`, `stop` and `restart`: a served copy's life."""

from __future__ import annotations

import click

from sparkops.cli.options import Changing, Globals, changing, target, with_globals, with_service


def _verb(name: str, state: str, text: str) -> click.Command:
    @click.command(name, help=text)
    @target
    @with_service
    @changing
    @with_globals
    def verb(given: Globals, pattern: str | None, all_nodes: bool, service: str, how: Changing) -> int:
        from sparkops.cli.run import Workplace, run

        place = Workplace(given, "service")
        return run(place, place.pattern(pattern, all_nodes), how, {"service": service, "state": state})

    return verb


start = _verb("start", "started", "Start a served copy, and wait until it answers.")
stop = _verb("stop", "stopped", "Stop a served copy; requests in flight end first.")
restart = _verb("restart", "restarted", "Restart a served copy, and wait until it answers.")
