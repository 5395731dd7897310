"""The `vllm serve` that a recipe means. Pure: data in, words out; host, port and the model's path are the node's."""

from __future__ import annotations

from sparkops.recipes.schema import Recipe

# A stop lets running requests end for this long; the unit's TimeoutStopSec is longer. vLLM's own default, 0, cuts
# streams short in a way that clients can't tell from an end.
SHUTDOWN_TIMEOUT_S = 60

DEFAULTS = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
}


def serve_args(recipe: Recipe) -> list[str]:
    """The flags after the model's path, without --host and --port."""
    args = [
        *("--served-model-name", recipe.served_model_name),
        *("--max-model-len", str(recipe.max_model_len)),
        # With the KV pool pinned it only feeds the start-up check of free memory, which runs all the same.
        *("--gpu-memory-utilization", f"{recipe.gpu_memory_utilization:g}"),
    ]
    if recipe.kv_cache_memory_bytes is not None:
        args += ["--kv-cache-memory-bytes", str(recipe.kv_cache_memory_bytes)]
    return [*args, "--shutdown-timeout", str(SHUTDOWN_TIMEOUT_S), *recipe.args]


def environment(recipe: Recipe) -> dict[str, str]:
    """The server's environment but for PATH, which is the node's (templates/env.j2).

    The engine gives up on its core after VLLM_ENGINE_READY_TIMEOUT_S (600): here that is the recipe's `ready_within`.
    """
    return {
        **DEFAULTS,
        "VLLM_ENGINE_READY_TIMEOUT_S": str(recipe.ready_within),
        **recipe.env,
    }
