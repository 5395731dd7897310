"""`sparkops play`: any playbook."""

from __future__ import annotations

from pathlib import Path

import click

from sparkops.cli.options import Changing, Globals, changing, with_globals


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--list-hosts", is_flag=True, help="Only list the hosts of each play.")
@click.option("--list-tasks", is_flag=True, help="Only list the tasks that would run.")
@click.option("--list-tags", is_flag=True, help="Only list the tags there are.")
@click.option("--syntax-check", is_flag=True, help="Only read the playbook, and say what is wrong with it.")
@click.option("--step", is_flag=True, help="Ask before each task.")
@changing
@with_globals
def play(
    given: Globals,
    file: Path,
    list_hosts: bool,
    list_tasks: bool,
    list_tags: bool,
    syntax_check: bool,
    step: bool,
    how: Changing,
) -> int:
    """Run a playbook. It speaks Ansible's words; one that is not supported is an error."""
    from sparkops.cli.run import Workplace, look, run

    place = Workplace(given, file=file)
    chosen = [name for name, on in (("hosts", list_hosts), ("tasks", list_tasks), ("tags", list_tags)) if on]
    if chosen or syntax_check:
        return look(place, how, chosen)
    return run(place, None, how, {}, step=step)
