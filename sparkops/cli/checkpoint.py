"""`sparkops checkpoint`: what a checkpoint is, and whether it fits. Only headers and config are read for that."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sparkops.cli.graft import graft_mtp
from sparkops.cli.options import Globals, with_globals

if TYPE_CHECKING:
    from sparkops.checkpoint.fit import Wanted
    from sparkops.checkpoint.headers import Headers
    from sparkops.recipes.load import Catalogue


class PositiveNumber(click.FloatRange):
    """More than nothing, and a number: float() takes `nan` too."""

    def __init__(self) -> None:
        super().__init__(min=0, min_open=True, max=1e6)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """click's protocol."""
        number = super().convert(value, param, ctx)
        if number != number:
            self.fail(f"{value!r} is no number", param, ctx)
        return number


Positive = PositiveNumber()


@click.group()
@with_globals
def checkpoint(given: Globals) -> None:
    """Look into checkpoints. SOURCE is a folder or a *.safetensors file, or hf:ORG/NAME[@REVISION]."""
    click.get_current_context().find_root().obj = asdict(given)


checkpoint.add_command(graft_mtp)


def reached(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say where SOURCE is reached."""
    node = click.option("--node", metavar="NODE", help="SOURCE is a path on this node.")
    endpoint = click.option("--endpoint", metavar="URL", help="The hub (default: $HF_ENDPOINT, or Hugging Face).")
    return node(endpoint(function))


@checkpoint.command("inspect")
@click.argument("source")
@click.option("--bandwidth", type=Positive, default=273.0, show_default=True, metavar="GB/S", help="Of the memory.")
@reached
@with_globals
def inspect_(given: Globals, source: str, bandwidth: float, node: str | None, endpoint: str | None) -> int:
    """Say what SOURCE holds: tensors, bytes by category, bytes a decode step reads, and which flags follow.

    A token for gated models is taken from HF_TOKEN.
    """
    from sparkops.checkpoint.advice import advice
    from sparkops.checkpoint.inspect import inspect
    from sparkops.checkpoint.words import inspection

    found = inspect(_headers(given, source, node, endpoint))
    told = advice(found)
    _answer(given, lambda: found.document(told, bandwidth), lambda: inspection(found, told, bandwidth))
    return 0


@checkpoint.command()
@click.argument("source", metavar="SOURCE|RECIPE")
@click.option("--source", "where", metavar="SOURCE", help="Where a recipe's checkpoint is (default: as it says).")
@click.option("--context", type=click.IntRange(1), metavar="TOKENS", help="Of a request (default: the model's).")
@click.option("--kv-gib", type=Positive, metavar="GIB", help="The KV cache's pool (default: 8).")
@click.option("--speculative", type=click.IntRange(0, 64), metavar="K", help="Tokens that the draft proposes.")
@click.option("--memory", type=Positive, metavar="GIB", help="That may be used (default: 114 of a Spark's 121.7).")
@reached
@with_globals
def fit(given: Globals, source: str, where: str | None, node: str | None, endpoint: str | None, **asked: Any) -> int:
    """Say whether SOURCE fits a node, or a RECIPE's checkpoint with the recipe's pool, context and draft.

    Options win over the recipe. What does not fit is said, and is no error. A recipe's name comes before a folder's:
    write ./NAME for the folder.
    """
    from sparkops.checkpoint.advice import lacking
    from sparkops.checkpoint.fit import Wanted
    from sparkops.checkpoint.fit import fit as fitted
    from sparkops.checkpoint.inspect import inspect
    from sparkops.checkpoint.recipe import source as recipe_source
    from sparkops.checkpoint.recipe import wanted as recipe_wanted
    from sparkops.checkpoint.words import fitting, troubles
    from sparkops.errors import InputError
    from sparkops.project.near import did_you_mean

    catalogue = _catalogue(given)
    wanted, path, directory = Wanted(), source, ""
    if source in catalogue.names("recipes"):
        recipe = catalogue.recipe(source)
        wanted, directory = recipe_wanted(recipe), recipe.directory
        # On a node it is in models_dir, wherever it came from.
        path = (where or "") if node else recipe_source(recipe, where)
    elif where:
        raise click.UsageError(f"--source goes with a recipe, and there is none called {source!r}")
    elif not node and not source.startswith("hf:") and not Path(source).expanduser().exists():
        hint = did_you_mean(source, catalogue.names("recipes"), "'sparkops recipe list' lists the recipes")
        raise InputError(f"there is no recipe, folder or file {source!r}", hint=hint)
    found = inspect(_headers(given, path, node, endpoint, directory))
    result = fitted(found, _asked(wanted, **asked))
    _answer(given, result.document, lambda: fitting(source, result))
    for line in [*lacking(found, result.draft), *troubles(result)]:
        click.echo(f"{click.style('warning:', fg='yellow', bold=True)} {line}", err=True)
    return 0


def _asked(
    wanted: Wanted, context: int | None, kv_gib: float | None, speculative: int | None, memory: float | None
) -> Wanted:
    """What the options say, over what the recipe says."""
    from sparkops.checkpoint.fit import GIB

    if context is not None:
        wanted = replace(wanted, context=context)
    if kv_gib is not None:
        wanted = replace(wanted, pool=int(kv_gib * GIB))
    if memory is not None:
        wanted = replace(wanted, memory=int(memory * GIB))
    if speculative is not None:
        wanted = replace(wanted, serving=replace(wanted.serving, draft=speculative))
    return wanted


def _headers(given: Globals, source: str, node: str | None, endpoint: str | None, directory: str = "") -> Headers:
    if node is None:
        from sparkops.checkpoint.sources import headers

        return headers(source, endpoint)
    if source.startswith("hf:"):
        raise click.UsageError("a hub is asked from here: leave --node out")
    return _on_node(given, node, source, directory)


def _on_node(given: Globals, node: str, source: str, directory: str) -> Headers:
    """From a path on a node; "": `directory` in its models_dir."""
    from sparkops.checkpoint.headers import Headers
    from sparkops.cli.collect import collect
    from sparkops.cli.run import Workplace
    from sparkops.errors import HostUnreachable, InputError

    place = Workplace(given, "checkpoint-headers")
    hosts = place.inventory.select(node)
    if len(hosts) != 1:
        raise InputError(f"--node {node} means {len(hosts)} nodes", hint="name one")
    name = hosts[0].name
    found, code = collect(place, name, {"source": source, "directory": directory})
    answer = found[name].results.get("checkpoint_headers", {})
    if "document" not in answer:
        kind = HostUnreachable if code == HostUnreachable.exit_code else InputError
        raise kind(found[name].trouble or "it gave no answer", where=name)
    return Headers.of(answer["document"])


def _catalogue(given: Globals) -> Catalogue:
    from sparkops.project.settings import Project
    from sparkops.recipes.load import Catalogue

    return Catalogue(Project.find(given.directory, given.inventory).roots())


def _answer(given: Globals, document: Callable[[], dict[str, Any]], lines: Callable[[], Iterable[str]]) -> None:
    text = json.dumps(document(), indent=4, ensure_ascii=False) if given.as_json else "\n".join(lines())
    click.echo(text)
