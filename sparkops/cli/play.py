"""`sparkops play`: any playbook."""

from __future__ import annotations

from pathlib import Path

import click

from sparkops.cli.options import Changing, Globals, changing, with_globals


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@changing
@with_globals
def play(given: Globals, file: Path, how: Changing) -> int:
    """Run a playbook. It speaks Ansible's words; one that is not supported is an error."""
    from sparkops.cli.run import Workplace, run

    return run(Workplace(given, file=file), None, how, {})
