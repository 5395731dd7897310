"""`sparkops recipe`: what recipes there are, what they hold, and the command that they mean. Nothing is contacted."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sparkops.cli.options import Globals, with_globals

if TYPE_CHECKING:
    from sparkops.errors import InputError
    from sparkops.recipes.load import Catalogue, Loaded

HOME = "/opt/sparkops"
MODELS = "~/models/hf"


@click.group()
@with_globals
def recipe(given: Globals) -> None:
    """Show and check recipes. NAME is a recipe's name, or a file's path."""
    click.get_current_context().find_root().obj = asdict(given)


@recipe.command("list")
@with_globals
def list_(given: Globals) -> int:
    """The recipes there are: the project's and the shipped ones."""
    from sparkops.cli.table import table
    from sparkops.recipes.listing import recipe_rows

    rows = recipe_rows(_catalogue(given))
    if given.as_json:
        _print({"recipes": rows})
        return 0
    head = ("NAME", "MODEL", "ENGINE", "CONTEXT", "KV POOL", "PATCHES", "FROM")
    click.echo(table(head, [_row(row) for row in rows]))
    return 0


@recipe.command()
@click.argument("name")
@with_globals
def show(given: Globals, name: str) -> int:
    """The whole recipe as YAML; one that extends another says where each value comes from."""
    from sparkops.recipes.show import origins, recipe_yaml
    from sparkops.recipes.variables import recipe_variables

    found = _load(_catalogue(given), name)
    if given.as_json:
        about = {"name": found.recipe.name, "file": str(found.path), "extends": list(found.extends)}
        _print({**about, "recipe": recipe_variables(found.recipe), "from": origins(found)})
    else:
        click.echo(recipe_yaml(found), nl=False)
    return 0


@recipe.command()
@click.argument("names", metavar="[NAME...]", nargs=-1)
@with_globals
def validate(given: Globals, names: tuple[str, ...]) -> int:
    """Check recipes, all of them when none is named: fields, engine, patches, flags and figures."""
    from sparkops.errors import InputErrors
    from sparkops.recipes.findings import Warned

    catalogue = _catalogue(given)
    found = {name: _findings(catalogue, name) for name in names or catalogue.names("recipes")}
    errors = [one for all_ in found.values() for one in all_ if not isinstance(one, Warned)]
    if given.as_json:
        _print({"recipes": [_verdict(name, all_) for name, all_ in found.items()]})
        return 2 if errors else 0
    for name, all_ in found.items():
        click.echo(f"{name}: {'wrong' if any(one in errors for one in all_) else 'ok'}")
    for warning in (one for all_ in found.values() for one in all_ if isinstance(one, Warned)):
        place = f"{warning.where}: " if warning.where else ""
        click.echo(f"{click.style('warning:', fg='yellow', bold=True)} {place}{warning.message}", err=True)
        if warning.hint:
            click.echo(f"  {warning.hint}", err=True)
    if errors:
        raise InputErrors(list(errors))
    return 0


@recipe.command()
@click.argument("name")
@click.option("--host", metavar="HOST", help="Where it listens (default: the recipe's).")
@click.option("--port", type=click.IntRange(1, 65535), metavar="PORT", help="Its port (default: the recipe's).")
@click.option("--model-path", metavar="PATH", help=f"The checkpoint on the node (default: in {MODELS}).")
@click.option("--engine-path", metavar="PATH", help=f"The engine on the node (default: in {HOME}/engines).")
@with_globals
def command(
    given: Globals, name: str, host: str | None, port: int | None, model_path: str | None, engine_path: str | None
) -> int:
    """The exact environment and command that a node runs, as its release has them."""
    from sparkops.serving.command import Place, env_lines, serve_command, serve_environment, shell_line

    catalogue = _catalogue(given)
    found = _load(catalogue, name).recipe
    place = Place(
        engine_path or f"{HOME}/engines/{_engine_id(catalogue, found.engine, found.patch_names())}",
        model_path or _model_path(found.model_source, found.directory),
        host or found.host,
        port or found.port,
    )
    argv, variables = serve_command(found, place), serve_environment(found, place)
    _note_own_templates(given)
    if given.as_json:
        _print({"argv": argv, "environment": variables})
    else:
        click.echo("\n".join([*env_lines(variables), shell_line(argv)]))
    return 0


@recipe.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--name", help="What to call it (default: from the file).")
@click.option("--engine", metavar="NAME", default="vllm-0.24.0", show_default=True, help="The engine to serve it with.")
@click.option("--max-model-len", type=click.IntRange(1), metavar="N", help="Where the file gives none.")
@with_globals
def import_(given: Globals, file: Path, name: str | None, engine: str, max_model_len: int | None) -> int:
    """Print the recipe FILE of spark-vllm-docker or sparkrun as one of ours; what has no like here is named."""
    from sparkops.project import yaml
    from sparkops.recipes.sparkrun import translate

    catalogue = _catalogue(given)
    lock = catalogue.engine(engine).locks
    packages = Path(next(iter(lock.values()))).read_text("utf-8")
    found = translate(yaml.load(file), file, name=name, engine=engine, lock=packages, max_model_len=max_model_len)
    if given.as_json:
        _print({"recipe": found.recipe, "not_mapped": [asdict(one) for one in found.left_out]})
        return 0
    click.echo(found.text(), nl=False)
    for one in found.left_out:
        click.echo(f"{click.style('not mapped:', fg='yellow', bold=True)} {one}", err=True)
    return 0


def _note_own_templates(given: Globals) -> None:
    from sparkops.project.data import shipped
    from sparkops.project.settings import Project

    project = Project.find(given.directory, given.inventory)
    for name in ("run.j2", "env.j2"):
        file = project.find_file("templates", name)
        if file.resolve().parent != shipped("templates").resolve():
            warning = f"{file} is the project's own, and may write something else"
            click.echo(f"{click.style('warning:', fg='yellow', bold=True)} {warning}", err=True)


def _catalogue(given: Globals) -> Catalogue:
    from sparkops.project.settings import Project
    from sparkops.recipes.load import Catalogue

    return Catalogue(Project.find(given.directory, given.inventory).roots())


def _load(catalogue: Catalogue, name: str) -> Loaded:
    """A recipe by name; what has a slash or a suffix is a file."""
    is_file = "/" in name or name.endswith((".yml", ".yaml"))
    return catalogue.load_recipe(Path(name).absolute() if is_file else catalogue.path("recipes", name))


def _findings(catalogue: Catalogue, name: str) -> list[InputError]:
    from sparkops.errors import InputError
    from sparkops.recipes.crosscheck import findings

    try:
        return findings(catalogue, _load(catalogue, name))
    except InputError as error:
        return [error]


def _verdict(name: str, found: list[InputError]) -> dict[str, Any]:
    from sparkops.recipes.findings import Warned

    told: dict[bool, list[dict[str, str | None]]] = {False: [], True: []}
    for one in found:
        where = str(one.where) if one.where else None
        told[isinstance(one, Warned)].append({"message": one.message, "where": where, "hint": one.hint})
    return {"name": name, "ok": not told[False], "errors": told[False], "warnings": told[True]}


def _row(row: dict[str, Any]) -> tuple[str, ...]:
    if row["error"]:
        return (row["name"], f"wrong: {row['error']}", "", "", "", "", row["from"])
    pool = row["kv_cache_memory_bytes"]
    size = f"{pool / 2**30:.3g} GiB" if pool else "-"
    context = f"{row['max_model_len']:,}"
    return (row["name"], row["model"], row["engine"], context, size, ",".join(row["patches"]) or "-", row["from"])


def _engine_id(catalogue: Catalogue, engine: str, patches: list[str]) -> str:
    """The engine's folder on a Spark (aarch64), or on what it has a lock for."""
    from sparkops.recipes.variables import engine_variables

    built = engine_variables(catalogue, engine, patches)["by_architecture"]
    return str(built.get("aarch64", next(iter(built.values())))["id"])


def _model_path(source: str | None, directory: str) -> str:
    return source if source and source.startswith(("/", "~")) else f"{MODELS}/{directory}"


def _print(document: dict[str, Any]) -> None:
    click.echo(json.dumps(document, indent=4, ensure_ascii=False))
