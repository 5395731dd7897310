"""`sparkops inventory`: what is known of hosts and groups, and where each value comes from."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sparkops.cli.options import Globals, with_globals

if TYPE_CHECKING:
    from sparkops.inventory.inventory import Inventory

playbook_dir = click.option(
    "--playbook-dir",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Where group_vars and host_vars of playbooks are (default: the project folder).",
)


@click.group()
@with_globals
def inventory(given: Globals) -> None:
    """Show hosts, groups and variables. Nothing is contacted."""
    click.get_current_context().find_root().obj = asdict(given)


@inventory.command("list")
@click.argument("pattern", required=False)
@playbook_dir
@with_globals
def list_(given: Globals, pattern: str | None, playbook_dir: Path | None) -> int:
    """Hosts, their groups and addresses. With --json: what `ansible-inventory --list` prints, so that an executable
    that calls `sparkops inventory list --json` is an inventory of Ansible."""
    from sparkops.inventory.listing import document

    found = _load(given, playbook_dir)
    names = list(found.members["all"]) if pattern is None else [host.name for host in found.select(pattern)]
    if given.as_json:
        _print(document(found, names))
        return 0
    rows = [(name, *_about(found, name)) for name in names]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
    for row in rows:
        click.echo("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())
    return 0


@inventory.command()
@click.argument("group", default="all")
@click.option("--vars", "with_vars", is_flag=True, help="Show variables too.")
@playbook_dir
@with_globals
def graph(given: Globals, group: str, with_vars: bool, playbook_dir: Path | None) -> int:
    """The tree of groups and hosts below GROUP."""
    from sparkops.inventory.listing import document
    from sparkops.inventory.listing import graph as tree

    found = _load(given, playbook_dir)
    lines = tree(found, group, with_vars)
    if given.as_json:
        _print(document(found, found.members[group]))
    else:
        click.echo("\n".join(lines))
    return 0


@inventory.command()
@click.argument("host")
@click.argument("variable", metavar="[VAR]", required=False)
@playbook_dir
@with_globals
def explain(given: Globals, host: str, variable: str | None, playbook_dir: Path | None) -> int:
    """Every variable of HOST (or VAR alone): its value, the file and line that gave it, and what it beat."""
    from sparkops.inventory.explain import explain as explained

    found = _load(given, playbook_dir).host(host)
    said = explained(found, variable)
    if given.as_json:
        documents = {name: [one.document() for one in values] for name, values in said.items()}
        told = {name: {**values[0], "beat": values[1:]} for name, values in documents.items()}
        _print({"host": found.name, "variables": told})
        return 0
    for name, values in said.items():
        for index, one in enumerate(values):
            value = json.dumps(one.document()["value"], ensure_ascii=False, default=str)
            place = f"{one.where}  {one.by}" if one.where else one.by
            click.echo(f"{name} = {value}\n    {place}" if index == 0 else f"    beat {value}\n        {place}")
    return 0


def _load(given: Globals, playbook_dir: Path | None) -> Inventory:
    from sparkops.inventory.inventory import load
    from sparkops.project.settings import Project

    project = Project.find(given.directory, given.inventory)
    found = load(project.sources(), also=[playbook_dir or project.root])
    for warning in found.warnings:
        click.echo(f"{click.style('warning:', fg='yellow', bold=True)} {warning}", err=True)
    return found


def _about(found: Inventory, name: str) -> tuple[str, str]:
    variables = found.hosts[name].vars
    address = str(variables.get("ansible_host", ""))
    port = variables.get("ansible_port")
    return ",".join(variables["group_names"]), f"{address}:{port}" if port else address


def _print(document: dict[str, Any]) -> None:
    click.echo(json.dumps(document, indent=4, sort_keys=True))
