"""Whether a recipe's figures agree with each other and with what a Spark has. Units: GiB, 10^9 bytes, tokens."""

from __future__ import annotations

from collections.abc import Iterator

from sparkops.errors import InputError
from sparkops.recipes.findings import Warned
from sparkops.recipes.schema import Recipe

GIB = 2**30
# Of a Spark's 128 GB: what the kernel shows, and what the published recipes count as usable.
VISIBLE_GIB = 121.7
USABLE_GIB = 114

Finding = tuple[type[InputError], str, tuple[str, ...]]


def figures(recipe: Recipe) -> Iterator[Finding]:
    """(InputError or Warned, message, path of the field) of each figure that cannot be right."""
    yield from _memory(recipe)
    yield from _pool(recipe)
    checkpoint, disk = recipe.checkpoint, recipe.requires.disk_gb
    if checkpoint and disk and disk < checkpoint.download_gb:
        message = f"{disk} GB of disk do not hold the checkpoint's {checkpoint.download_gb:g}"
        yield InputError, message, ("requires", "disk_gb")


def _memory(recipe: Recipe) -> Iterator[Finding]:
    needs = recipe.requires.memory_gib
    weights = (recipe.checkpoint and recipe.checkpoint.weights_gib) or 0
    pool = (recipe.kv_cache_memory_bytes or 0) / GIB
    share = recipe.gpu_memory_utilization * VISIBLE_GIB
    if needs and needs > VISIBLE_GIB:
        yield InputError, f"{needs} GiB are more than the {VISIBLE_GIB} a Spark has", ("requires", "memory_gib")
    elif needs and needs > USABLE_GIB:
        yield Warned, f"{needs} GiB are more than the {USABLE_GIB} that count as usable", ("requires", "memory_gib")
    if needs and weights + pool > needs:
        message = f"weights ({weights:g} GiB) and KV pool ({pool:g} GiB) alone need more than {needs} GiB"
        yield InputError, message, ("requires", "memory_gib")
    elif weights + pool > USABLE_GIB:
        message = f"weights ({weights:g} GiB) and KV pool ({pool:g} GiB) need more than the {USABLE_GIB} usable GiB"
        yield InputError, message, ("kv_cache_memory_bytes",)
    if share < weights + pool:
        message = (
            f"gpu_memory_utilization {recipe.gpu_memory_utilization:g} is {share:.1f} GiB, less than the weights and "
            f"the KV pool ({weights + pool:.1f})"
        )
        # With the pool pinned it feeds a check alone; else it is what the engine may take.
        kind = InputError if recipe.kv_cache_memory_bytes is None else Warned
        yield kind, message, ("gpu_memory_utilization",)
    elif share > USABLE_GIB:
        message = f"the start-up check wants {share:.1f} GiB free, and {USABLE_GIB} of a Spark's are usable"
        yield Warned, message, ("gpu_memory_utilization",)


def _pool(recipe: Recipe) -> Iterator[Finding]:
    tokens, concurrency = recipe.expect.kv_cache_tokens, recipe.expect.concurrency
    if tokens and tokens < recipe.max_model_len:
        message = f"a KV pool of {tokens} tokens does not hold one request of max_model_len ({recipe.max_model_len})"
        yield InputError, message, ("expect", "kv_cache_tokens")
    elif tokens and concurrency and abs(tokens / recipe.max_model_len - concurrency) > 0.006:
        message = f"{tokens} tokens hold {tokens / recipe.max_model_len:.2f} requests of {recipe.max_model_len}"
        yield InputError, f"{message}, not {concurrency:g}", ("expect", "concurrency")
