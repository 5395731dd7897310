"""Whether a checkpoint fits: its weights, its KV pool and the rest in a node's memory, and a request in the pool."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from sparkops.checkpoint.geometry import Serving, layout, limit
from sparkops.checkpoint.inspect import Inspection
from sparkops.checkpoint.kv import Capacity
from sparkops.errors import InputError

GIB = 1 << 30
# A DGX Spark shows 121.7 GiB, of which the published recipes use 114 (FACTS §1).
VISIBLE_GIB = 121.7
USABLE_GIB = 114.0
# The recipes' pool.
POOL_GIB = 8.0
# What the engine takes beside weights and pool: the published working sets (80, 39, 57 GiB) leave 7, 10 and 16.
OVERHEAD_BYTES = 10 * GIB
# vLLM's own --gpu-memory-utilization; more is refused on a machine that does anything else.
LARGEST_UTILIZATION = 0.92


@dataclass(frozen=True)
class Wanted:
    """What the user or a recipe asks for; None: the default. memory: bytes that may be used."""

    context: int | None = None
    pool: int | None = None
    memory: int | None = None
    utilization: float | None = None
    serving: Serving = field(default_factory=Serving)


@dataclass(frozen=True)
class Fit:
    """All sizes in bytes. memory: what may be used. draft: tokens that are proposed at once."""

    capacity: Capacity
    weights: int
    memory: int
    utilization: float
    draft: int = 0

    @property
    def pool_holds_one(self) -> bool:
        """Whether one request of full length fits in the pool; if not, the engine refuses to start."""
        return self.capacity.blocks >= self.capacity.need_blocks

    @property
    def headroom(self) -> int:
        """What is left of the memory; negative: it does not fit."""
        return self.memory - self.weights - self.capacity.pool - OVERHEAD_BYTES

    @property
    def flags(self) -> list[str]:
        """The two of `vllm serve`: the pool, and the share of memory that its start-up check asks for."""
        pool = ["--kv-cache-memory-bytes", str(self.capacity.pool)]
        return [*pool, "--gpu-memory-utilization", f"{self.utilization:g}"]

    def document(self) -> dict[str, Any]:
        """The JSON form; its keys are stable."""
        capacity = self.capacity
        return {
            "block_tokens": capacity.layout.block_tokens,
            "blocks": capacity.blocks,
            "need_blocks": capacity.need_blocks,
            "need_bytes": capacity.need_bytes,
            "pool_bytes": capacity.pool,
            "kv_tokens": capacity.tokens,
            "concurrency": capacity.concurrency,
            "max_context": capacity.max_context,
            "weights_bytes": self.weights,
            "headroom_bytes": self.headroom,
            "flags": self.flags,
        }


def fit(found: Inspection, wanted: Wanted) -> Fit:
    """How a checkpoint fits. Raises InputError: a model whose cache is not known, a longer context than it has."""
    longest = limit(found.config) if wanted.context is None or found.config.context() else wanted.context
    context = longest if wanted.context is None else wanted.context
    if context > longest:
        raise InputError(
            f"a context of {context:,} tokens: the model's own is {longest:,}, and the engine refuses a longer one",
            hint=f"--context {longest}, or less",
        )
    pool = int(POOL_GIB * GIB) if wanted.pool is None else wanted.pool
    memory = int(USABLE_GIB * GIB) if wanted.memory is None else wanted.memory
    visible = VISIBLE_GIB * GIB if wanted.memory is None else float(wanted.memory)
    capacity = Capacity(layout(found.config, wanted.serving), pool, context, longest)
    weights = found.resident_bytes
    utilization = wanted.utilization
    if utilization is None:
        # Just what is needed: the check then says no exactly when it should.
        share = math.ceil(100 * (weights + pool + OVERHEAD_BYTES) / visible) / 100
        utilization = min(share, LARGEST_UTILIZATION)
    return Fit(capacity, weights, memory, utilization, wanted.serving.draft)
