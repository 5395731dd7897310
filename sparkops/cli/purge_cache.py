"""`sparkops purge-cache`: give back the memory that the page cache holds of the models."""

from __future__ import annotations

import click

from sparkops.cli.options import Changing, Globals, changing, target, with_globals, with_service


@click.command("purge-cache")
@target
@click.option("--path", metavar="PATH", help="A file or folder on the nodes (default: models_dir).")
@click.option("--all", "everything", is_flag=True, help="Drop the whole page cache (needs sudo).")
@with_service
@changing
@with_globals
def purge_cache(
    given: Globals,
    pattern: str | None,
    all_nodes: bool,
    path: str | None,
    everything: bool,
    service: str,
    how: Changing,
) -> int:
    """Purge the models' pages from the page cache, on all nodes without a PATTERN."""
    from sparkops.cli.run import Workplace, run

    if path and everything:
        raise click.UsageError("give either --path or --all")
    place = Workplace(given, "purge-cache")
    values = {
        "service": service,
        **({"purge_path": path} if path else {}),
        **({"purge_scope": "all"} if everything else {}),
    }
    return run(place, place.pattern(pattern, all_nodes or pattern is None), how, values)
