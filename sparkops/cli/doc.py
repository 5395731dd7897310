"""`sparkops doc`: the manual of the modules."""

from __future__ import annotations

import click

from sparkops.cli.options import Globals, with_globals


@click.command()
@click.argument("module", required=False)
@with_globals
def doc(given: Globals, module: str | None) -> None:
    """List the modules, or show the manual of MODULE: its arguments, an example, and what its result has."""
    import json
    from dataclasses import asdict

    from sparkops.cli.manpage import listing, page
    from sparkops.playbook import modules
    from sparkops.playbook.manual import manual, synopsis

    if module is None:
        lines = {name: synopsis(name) for name in modules.names()}
        click.echo(json.dumps(lines, indent=2) if given.as_json else listing(lines))
        return
    name = module
    for prefix in modules.PREFIXES:
        name = name.removeprefix(prefix)
    if name not in modules.names():
        from sparkops.errors import InputError
        from sparkops.project.near import did_you_mean

        hint = did_you_mean(name, modules.names(), "'sparkops doc' lists all modules")
        raise InputError(f"there is no module {module!r}", hint=hint)
    found = manual(name)
    click.echo(json.dumps(asdict(found), indent=2) if given.as_json else page(found))
