"""`sparkops engine`: the engines that recipes name, their locks, and what nodes have of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from sparkops.cli.options import Globals, target, with_globals

if TYPE_CHECKING:
    from sparkops.cli.collect import Found
    from sparkops.project.settings import Project

INDEX = "https://pypi.org/simple"


@click.group()
@with_globals
def engine(given: Globals) -> None:
    """Show engines, resolve their locks, verify them on nodes. NAME is NAME-VERSION, as recipes say it: vllm-0.24.0."""
    click.get_current_context().find_root().obj = asdict(given)


@engine.command("list")
@with_globals
def list_(given: Globals) -> int:
    """The engines there are: the project's and the shipped ones."""
    from sparkops.cli.table import table
    from sparkops.recipes.listing import engine_rows
    from sparkops.recipes.load import Catalogue

    rows = engine_rows(Catalogue(_project(given).roots()))
    if given.as_json:
        click.echo(json.dumps({"engines": rows}, indent=4, ensure_ascii=False))
        return 0
    head = ("NAME", "PYTHON", "CUDA", "PACKAGES", "RECIPES", "FROM")
    click.echo(table(head, [_row(row) for row in rows]))
    return 0


@engine.command()
@click.argument("name")
@click.option(
    "--architecture",
    "machines",
    type=click.Choice(["aarch64", "x86_64"]),
    multiple=True,
    help="Resolve for this (default: all that the engine has).",
)
@click.option("--python", metavar="X.Y", help="For this Python (default: the engine's, or 3.12).")
@click.option("--exclude-newer", metavar="DATE", help="Only what was published before: 2026-07-28.")
@click.option("--index-url", metavar="URL", default=INDEX, show_default=True, help="A simple index.")
@with_globals
def lock(
    given: Globals,
    name: str,
    machines: tuple[str, ...],
    python: str | None,
    exclude_newer: str | None,
    index_url: str,
) -> int:
    """Resolve NAME with uv, with the hashes of all wheels, into engines/ of the project."""
    from sparkops.recipes.load import Catalogue
    from sparkops.recipes.locking import Resolution, lock_engine

    project = _project(given)
    how = Resolution(python, exclude_newer, index_url)
    written = lock_engine(Catalogue(project.roots()), project.root / "engines", name, machines, how)
    if given.as_json:
        click.echo(json.dumps({"engine": name, "locks": [asdict(one) for one in written]}, indent=4))
        return 0
    for one in written:
        click.echo(str(one))
    return 0


@engine.command()
@target
@with_globals
def verify(given: Globals, pattern: str | None, all_nodes: bool) -> int:
    """Compare the engines on nodes with their locks: packages missing, extra or of another version, files edited.

    All nodes without a PATTERN. Nothing is changed; the exit code is 1 when there is a problem.
    """
    from sparkops.cli.collect import collect
    from sparkops.cli.run import Workplace

    place = Workplace(given, "engine-verify")
    found, code = collect(place, place.pattern(pattern, all_nodes or pattern is None), {})
    answers = {name: _verified(one) for name, one in found.items()}
    if code in (0, 4) and any(one["problems"] for answer in answers.values() for one in answer["engines"]):
        code = 1
    if given.as_json:
        click.echo(json.dumps(answers, indent=4))
    else:
        click.echo("\n".join(line for name, answer in answers.items() for line in _verified_lines(name, answer)))
    return code


def _verified(found: Found) -> dict[str, Any]:
    """A node's part of the answer: engines as engine_verify has them, and why there is none, if so."""
    engines = found.results.get("engine_verify", {}).get("engines")
    return {"engines": engines or [], "trouble": found.trouble or None}


def _verified_lines(name: str, answer: dict[str, Any]) -> Iterator[str]:
    if answer["trouble"]:
        yield f"{name}  could not be looked at: {answer['trouble']}"
    elif not answer["engines"]:
        yield f"{name}  no engines"
    for one in answer["engines"]:
        problems = one["problems"]
        yield f"{name}  {one['name']}  {one['packages']} packages, {'not ' if problems else ''}as locked"
        yield from (f"  {problem}" for problem in problems)


def _project(given: Globals) -> Project:
    from sparkops.project.settings import Project

    return Project.find(given.directory, given.inventory)


def _row(row: dict[str, Any]) -> tuple[str, ...]:
    if row["error"]:
        return (row["name"], f"wrong: {row['error']}", "", "", "", row["from"])
    packages = ", ".join(f"{count} {machine}" for machine, count in row["packages"].items())
    recipes = ",".join(row["recipes"]) or "-"
    return (row["name"], row["python"] or "any", row["cuda"] or "-", packages, recipes, row["from"])
