"""How much memory served copies take together, and how much of a node's may be taken. Sizes are bytes.

CPU and GPU share a Spark's memory: what does not fit freezes the whole node, so it is refused before it starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sparkops.checkpoint.fit import GIB, OVERHEAD_BYTES, USABLE_GIB, VISIBLE_GIB
from sparkops.serving.preflight_evidence import Evidence, Service
from sparkops.serving.values import gib


@dataclass(frozen=True)
class Need:
    """What one copy takes; `how` says what it is made of. None: not known."""

    total: int | None
    how: str = ""

    def __str__(self) -> str:
        return "an unknown amount" if self.total is None else gib(self.total) + (f" ({self.how})" if self.how else "")


def need(recipe: Mapping[str, Any], resident: int | None, visible: int) -> Need:
    """Of a copy of `recipe` (as a mapping) whose tensors take `resident`, on a node with `visible` bytes.

    As in `checkpoint fit`: weights, KV pool and the rest; with a pool that the engine sizes, the share it may take.
    """
    pool = recipe.get("kv_cache_memory_bytes")
    if not pool and recipe.get("gpu_memory_utilization"):
        share = float(recipe["gpu_memory_utilization"])
        return Need(int(share * visible), f"gpu_memory_utilization {share:g}")
    weights = resident or int(GIB * float((recipe.get("checkpoint") or {}).get("weights_gib") or 0))
    if pool and weights:
        how = f"weights {weights / GIB:.1f}, KV pool {pool / GIB:.1f}, the rest {OVERHEAD_BYTES / GIB:.0f}"
        return Need(weights + int(pool) + OVERHEAD_BYTES, how)
    stated = (recipe.get("requires") or {}).get("memory_gib")
    return Need(int(GIB * float(stated)), "as its recipe says") if stated else Need(None)


def usable(visible: int) -> int:
    """What may be taken of a node's memory: the recipes' share of a Spark's."""
    return int(visible * USABLE_GIB / VISIBLE_GIB)


def of_service(one: Service, visible: int) -> Need:
    """What a deployed service takes."""
    return need(one.recipe, one.resident, visible)


def available(seen: Evidence) -> int:
    """MemAvailable once the copy that is replaced has ended."""
    own, visible = seen.own, seen.memory.total
    back = of_service(own, visible).total or 0 if own is not None and own.pid else 0
    return min(seen.memory.available + back, visible)
