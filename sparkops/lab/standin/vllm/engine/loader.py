"""Starts the engine: loads the model and lays out the KV cache, telling each step as vLLM does."""

from __future__ import annotations

import os
import time

from .._version import __version__
from ..logger import info
from ..model_executor.checkpoint import Checkpoint
from ..model_executor.models.interfaces import MultiModalConfig, has_defect
from ..model_executor.models.qwen3_5_mtp import Qwen3_5MTP
from ..model_executor.models.registry import model_class
from .kv_cache import GIB, KVCache
from .moe import backend_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

    from ..model_executor.models.interfaces import MultiModalModel

TOTAL_GIB = 121.7  # what a GB10 shows of its 128 GB
FREE_GIB = 115.0
ACTIVATIONS_GIB = 3.0  # what the profiling run takes, when the pool is not pinned


class Loaded:
    """A model ready to serve. draft_tokens: 0 without a draft; draft_sound: whether its proposals are accepted."""

    def __init__(self, *, max_model_len: int, kv_tokens: int, draft_tokens: int, draft_sound: bool) -> None:
        self.max_model_len = max_model_len
        self.kv_tokens = kv_tokens
        self.draft_tokens = draft_tokens
        self.draft_sound = draft_sound


def load(args: Namespace, checkpoint: Checkpoint) -> Loaded:
    """Start the engine. Raises ValueError with the line that the real engine ends with."""
    config = checkpoint.config
    architecture = model_class(checkpoint.architectures)
    length = model_length(args.max_model_len, config["text_config"]["max_position_embeddings"])
    draft_tokens = (args.speculative_config or {}).get("num_speculative_tokens", 0)
    cache = KVCache(config["text_config"], length=length, draft=draft_tokens)
    say(
        "interface.py:773",
        f"Setting attention block size to {cache.block_size} tokens to ensure that attention page size is >= "
        "mamba page size.",
    )
    say(
        "core.py:114",
        f"Initializing a V1 LLM engine (v{__version__}) with config: model='{args.model}', max_seq_len={length}, "
        f"speculative_config={args.speculative_config}, enforce_eager={args.enforce_eager}",
    )
    free = free_memory(args.gpu_memory_utilization)
    draft = load_model(args, checkpoint, architecture)
    pool = args.kv_cache_memory_bytes
    if pool is None:
        pool = profiled_pool(args.gpu_memory_utilization, checkpoint.bytes)
    else:
        say(
            "gpu_worker.py:419",
            f"Initial free memory {free:.2f} GiB, reserved {round(pool / GIB, 2)} GiB memory for KV Cache as specified "
            "by kv_cache_memory_bytes config and skipped memory profiling. This does not respect the "
            "gpu_memory_utilization config.",
        )
    cache.check(pool)
    if has_defect("kv"):
        # As an engine would that lays out its blocks in another way.
        pool -= cache.block_bytes
    tokens, concurrency = cache.tokens(pool), cache.concurrency(pool)
    say("kv_cache_utils.py:2146", f"GPU KV cache size: {tokens:,} tokens")
    say("kv_cache_utils.py:2147", f"Maximum concurrency for {length:,} tokens per request: {concurrency:.2f}x")
    return Loaded(
        max_model_len=length // 2 if has_defect("length") else length,
        kv_tokens=tokens,
        draft_tokens=draft_tokens,
        draft_sound=draft is not None and draft.sound,
    )


def model_length(asked: int | None, derived: int) -> int:
    """The longest request in tokens: as asked, up to what the model was made for."""
    if asked and asked > derived:
        raise ValueError(
            f"User-specified max_model_len ({asked}) is greater than the derived max_model_len "
            f"(max_position_embeddings={derived} or model_max_length=None in model's config.json)."
        )
    return asked or derived


def free_memory(utilization: float) -> float:
    """GiB free on the GPU. Nodes of a lab share a machine, so it is checked only when the lab says how much is free."""
    given = os.environ.get("SPARKOPS_LAB_FREE_GIB")
    free = float(given) if given else FREE_GIB
    desired = utilization * TOTAL_GIB
    if given and free < desired:
        raise ValueError(
            f"Free memory on device cuda:0 ({free:.2f}/{TOTAL_GIB:.1f} GiB) on startup is less than desired GPU memory "
            f"utilization ({utilization}, {desired:.2f} GiB). Decrease GPU memory utilization or reduce GPU memory "
            "used by other processes."
        )
    return free


def load_model(args: Namespace, checkpoint: Checkpoint, architecture: type[MultiModalModel]) -> Qwen3_5MTP | None:
    """Build the model and give it the checkpoint's tensors; returns the draft, if one is wanted."""
    say("gpu_model_runner.py:4700", f"Starting to load model {args.model}...")
    start = time.monotonic()
    names = checkpoint.tensors()
    model = architecture(checkpoint.config, MultiModalConfig(args.language_model_only))
    say("moe.py:210", backend_line(checkpoint.config, args.moe_backend))
    model.load_weights(name for name in names if not name.startswith("mtp."))
    draft = None
    if args.speculative_config:
        draft = Qwen3_5MTP(checkpoint.config)
        draft.load_weights(name for name in names if name.startswith("mtp."))
    # A bar that is drawn anew over itself: the journal takes a line with a carriage return for binary data.
    say("weight_utils.py:900", "Loading safetensors checkpoint shards: 100% Completed | 1/1 [00:00<00:00, 75.34it/s]\r")
    seconds = time.monotonic() - start
    say("default_loader.py:430", f"Loading weights took {seconds:.2f} seconds")
    say(
        "gpu_model_runner.py:4820",
        f"Model loading took {checkpoint.bytes / GIB:.2f} GiB memory and {seconds:.6f} seconds",
    )
    return draft


def profiled_pool(utilization: float, weights: int) -> int:
    """Bytes left for the KV cache when its size was not given."""
    pool = int((utilization * TOTAL_GIB - ACTIVATIONS_GIB) * GIB) - weights
    say("gpu_worker.py:440", f"Available KV cache memory: {pool / GIB:.2f} GiB")
    if pool <= 0:
        raise ValueError(
            "No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the "
            "engine."
        )
    return pool


def say(source: str, message: str) -> None:
    """A line of the engine's process."""
    info("EngineCore", source, message)
