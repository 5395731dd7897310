"""`sparkops schema`: JSON Schemas of the files that users write, for editors."""

from __future__ import annotations

from typing import Any

import click

from sparkops.cli.options import Globals, with_globals

KINDS = ("playbook", "inventory", "recipe", "engine", "patch", "settings")
DRAFT = "https://json-schema.org/draft/2020-12/schema"


@click.command()
@click.argument("kind", type=click.Choice(KINDS))
@with_globals
def schema(given: Globals, kind: str) -> None:
    """Print the JSON Schema (draft 2020-12) of a kind of file.

    In an editor with a YAML language server, for example, as a file's first line:
    # yaml-language-server: $schema=playbook.schema.json
    """
    import json

    del given
    click.echo(json.dumps(document(kind), indent=2))


def document(kind: str) -> dict[str, Any]:
    """The schema of one of KINDS."""
    return {"$schema": DRAFT, "title": f"sparkops {kind}", **_body(kind)}


def _body(kind: str) -> dict[str, Any]:
    if kind == "playbook":
        from sparkops.playbook.schema import playbook_schema

        return playbook_schema()
    if kind == "inventory":
        from sparkops.inventory.schema import inventory_schema

        return inventory_schema()
    from sparkops.recipes.json_schema import struct_schema

    return struct_schema(kind)
