"""What a recipe must hold together: its engine, patches, flags and figures. Pure: files in, findings out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from sparkops.errors import InputError, Position
from sparkops.project import yaml
from sparkops.recipes.checks import SOURCE
from sparkops.recipes.findings import Warned
from sparkops.recipes.load import Catalogue, Loaded
from sparkops.recipes.memory import figures
from sparkops.recipes.schema import Recipe

# Flags that spread one copy over several GPUs; a Spark has one.
SPREADING = {"--tensor-parallel-size", "-tp", "--pipeline-parallel-size", "-pp", "--data-parallel-size", "-dp"}
# Flags that change how many tokens a KV pool holds.
SIZING = {"--speculative-config", "--kv-cache-dtype", "--block-size"}
JSON_FLAGS = {"--speculative-config", "--compilation-config", "--hf-overrides", "--override-generation-config"}


def findings(catalogue: Catalogue, loaded: Loaded) -> list[InputError]:
    """What is wrong (InputError) and what is doubtful (Warned) in a recipe that loads, each with its position."""
    recipe, document = loaded.recipe, loaded.document
    return [
        *_engine(catalogue, document),
        *_patches(catalogue, recipe, document),
        *_draft(catalogue, recipe, document),
        *_args(recipe, document.get("args")),
        *_listening(recipe, document),
        *(_at(document, *one) for one in figures(recipe)),
        *_stale(document, str(loaded.path)),
    ]


def _engine(catalogue: Catalogue, document: Any) -> Iterator[InputError]:
    try:
        catalogue.engine(document["engine"])
    except InputError as error:
        yield error


def _patches(catalogue: Catalogue, recipe: Recipe, document: Any) -> Iterator[InputError]:
    uses = document.get("patches", [])
    for index, use in enumerate(recipe.patches):
        where = yaml.position(uses, index)
        try:
            patch = catalogue.patch(uses[index]["name"])
        except InputError as error:
            yield error
            continue
        known = [version.engine.replace(" ", "-") for version in patch.versions]
        if use.when == "always" and recipe.engine not in known:
            message = f"the patch {use.name} does not know {recipe.engine}"
            yield InputError(message, where=where, hint=f"it knows: {', '.join(known)}")
        if use.name in [other.name for other in recipe.patches[:index]]:
            yield InputError(f"the patch {use.name} stands here twice", where=where)


def _draft(catalogue: Catalogue, recipe: Recipe, document: Any) -> Iterator[InputError]:
    """The recipe whose checkpoint gets the draft, and what a graft makes of it."""
    if recipe.draft is None:
        return
    written = document["draft"]
    if recipe.model_source is not None:
        message = "model_source says where the whole checkpoint is, so that nothing is grafted"
        yield Warned(message, where=yaml.position(written), hint="leave one of the two out")
    if recipe.checkpoint and not recipe.checkpoint.mtp:
        yield InputError("the checkpoint that a graft makes has mtp tensors", where=yaml.position(written))
    try:
        target = None if SOURCE.fullmatch(recipe.draft.target) else catalogue.recipe(written["target"])
    except InputError as error:
        yield error
        return
    where = yaml.position(written, "target")
    if target and (target.draft or (target.checkpoint and target.checkpoint.mtp)):
        yield InputError(f"the checkpoint of {target.name} has a draft already", where=where)
    if target and target.directory == recipe.directory:
        message = f"{target.name} and {recipe.name} have the same folder, {recipe.directory}"
        yield InputError(message, where=where, hint="a graft makes a new folder: give `model` another name")


def _args(recipe: Recipe, written: Any) -> Iterator[InputError]:
    seen: set[str] = set()
    for index, word in enumerate(recipe.args):
        where = yaml.position(written, index)
        flag, equals, value = word.partition("=")
        if not _is_flag(word):
            if index == 0 or ("=" in recipe.args[index - 1] and _is_flag(recipe.args[index - 1])):
                yield InputError(f"{word!r} follows no flag; vllm would take it for a model", where=where)
            continue
        following = recipe.args[index + 1] if index + 1 < len(recipe.args) else ""
        value = value if equals else following
        if flag in SPREADING and value != "1":
            hint = "every node serves its own whole copy; leave the flag out"
            yield InputError(f"{flag} {value}: a Spark has one GPU", where=where, hint=hint)
        if flag in JSON_FLAGS and not _is_json(value):
            yield InputError(f"{flag} takes JSON, not {value!r}", where=where)
        if flag in seen:
            yield Warned(f"{flag} stands here twice; the last one counts", where=where)
        seen.add(flag)
        yield from _against_checkpoint(recipe, flag, value, where)


def _against_checkpoint(recipe: Recipe, flag: str, value: str, where: Position | None) -> Iterator[InputError]:
    checkpoint = recipe.checkpoint
    if checkpoint is None:
        return
    if flag == "--language-model-only" and checkpoint.visual:
        yield Warned(
            f"the checkpoint has {checkpoint.visual} visual tensors, and {flag} leaves their tower out",
            where=where,
            hint="with a guarded engine it does not load at all: leave the flag out",
        )
    if flag == "--speculative-config" and _is_json(value):
        config = json.loads(value)
        own_draft = isinstance(config, dict) and config.get("method") == "mtp" and "model" not in config
        if own_draft and checkpoint.mtp == 0:
            yield InputError("the checkpoint has no mtp tensors to draft with", where=where)


def _listening(recipe: Recipe, document: Any) -> Iterator[InputError]:
    if recipe.port < 1024:
        message = f"port {recipe.port}: a server that is not root may not listen below 1024"
        yield Warned(message, where=yaml.position(document, "port"))
    if recipe.host in ("0.0.0.0", "::"):
        hint = "give the nodes an api_key, or set `host` in the inventory for the nodes that shall"
        message = f"host {recipe.host}: every network that reaches a node may use it"
        yield Warned(message, where=yaml.position(document, "host"), hint=hint)


def _stale(document: Any, file: str) -> Iterator[InputError]:
    """Figures of the recipe that the one in `file` extends, which no longer hold for it."""
    expect = document.get("expect")
    expected = yaml.position(expect, "kv_cache_tokens") if expect and expect.get("kv_cache_tokens") else None
    for field in ("kv_cache_memory_bytes", "max_model_len", "args"):
        sizes = field != "args" or SIZING & {word.partition("=")[0] for word in document.get("args", [])}
        where = yaml.position(document, field) if sizes and field in document else None
        if where and expected and where.file == file != expected.file:
            hint = "say what you expect: `expect: {kv_cache_tokens: N, concurrency: X}`, or null for both"
            message = f"expect.kv_cache_tokens ({expect['kv_cache_tokens']}) is that of another {field}"
            yield Warned(message, where=where, hint=hint)
            return


def _at(document: Any, kind: type[InputError], message: str, path: tuple[str, ...]) -> InputError:
    """A finding about the field at `path`."""
    for key in path[:-1]:
        document = document.get(key, document)
    return kind(message, where=yaml.position(document, path[-1]))


def _is_flag(word: str) -> bool:
    return re.match(r"--?[A-Za-z]", word) is not None


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
