"""What a recipe asks of the cache: its pool, its context, its utilization, and what its flags say of the draft."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from sparkops.checkpoint.config import Config
from sparkops.checkpoint.fit import Wanted
from sparkops.checkpoint.geometry import Serving, layout
from sparkops.checkpoint.kv import Capacity
from sparkops.errors import InputError
from sparkops.recipes.schema import Recipe

SPECULATIVE = ("--speculative-config", "-sc")
KV_DTYPE = ("--kv-cache-dtype",)
STEP = ("--max-num-batched-tokens",)
BLOCK = ("--block-size",)


def wanted(recipe: Recipe) -> Wanted:
    """What to ask for. Raises InputError when a flag's value is none."""
    serving = Serving(draft=_draft(recipe))
    if kv_dtype := flag(recipe.args, KV_DTYPE):
        serving = replace(serving, kv_dtype=kv_dtype)
    if step := flag(recipe.args, STEP):
        serving = replace(serving, step_tokens=_count(recipe, STEP[0], step))
    if block := flag(recipe.args, BLOCK):
        serving = replace(serving, block_tokens=_count(recipe, BLOCK[0], block))
    return Wanted(
        context=recipe.max_model_len,
        pool=recipe.kv_cache_memory_bytes,
        utilization=recipe.gpu_memory_utilization,
        serving=serving,
    )


def kv_cache_tokens(config: Mapping[str, Any] | None, variables: Mapping[str, Any]) -> int | None:
    """What the engine's log must say of the KV cache, from a checkpoint's config.json and a recipe's variables.

    None where that is not known: the recipe pins no pool, or the model's cache is of a kind that is not known here.
    """
    try:
        recipe = msgspec.convert(variables, Recipe)
        asked = wanted(recipe)
        if not config or asked.pool is None:
            return None
        cache = layout(Config(dict(config)), asked.serving)
    except (InputError, msgspec.ValidationError):
        return None
    return Capacity(cache, asked.pool, recipe.max_model_len, recipe.max_model_len).tokens


def source(recipe: Recipe, given: str | None) -> str:
    """Where its checkpoint is: what the user gave, or what the recipe says. Raises InputError."""
    found = given or recipe.model_source
    if not found:
        hint = f"--source FOLDER or --source hf:ORG/NAME; {recipe.model_source_hint or 'it is not published'}"
        raise InputError(f"the recipe {recipe.name} does not say where {recipe.model} is", hint=hint)
    pinned = not given and found.startswith("hf:") and recipe.model_revision
    return f"{found}@{recipe.model_revision}" if pinned else found


def flag(args: Sequence[str], names: Sequence[str]) -> str | None:
    """The value that a flag has, in either way of writing it; the last one counts."""
    found = None
    for at, word in enumerate(args):
        name, equals, value = word.partition("=")
        # vLLM takes --max_model_len too.
        if name.replace("_", "-") in names:
            found = value if equals else next(iter(args[at + 1 : at + 2]), None)
    return found


def _draft(recipe: Recipe) -> int:
    """Tokens that the model's own draft proposes; a draft of another kind has no layers in this checkpoint."""
    text = flag(recipe.args, SPECULATIVE)
    if text is None:
        return 0
    try:
        config = json.loads(text)
        method, tokens = config["method"], config["num_speculative_tokens"]
    except (ValueError, KeyError, TypeError):
        raise InputError(
            f"the recipe {recipe.name}: {SPECULATIVE[0]} {text[:80]} names no method and num_speculative_tokens"
        ) from None
    if not str(method).endswith("mtp") or "model" in config:
        what = f"the recipe {recipe.name} drafts by {str(method)[:40]!r}"
        raise InputError(f"{what}: only a checkpoint's own draft (mtp) is known here")
    return _count(recipe, "num_speculative_tokens", tokens)


def _count(recipe: Recipe, name: str, value: object) -> int:
    text = str(value)
    if not text.isdecimal() or len(text) > 9 or int(text) < 1:
        raise InputError(f"the recipe {recipe.name}: {name} is {text[:40]!r}, no number of tokens")
    return int(text)
