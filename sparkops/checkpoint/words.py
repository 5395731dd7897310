"""Inspections and fits as lines for people: GB (10^9 bytes) for what is read, GiB (2^30) for what fills memory."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from sparkops.checkpoint.fit import GIB, OVERHEAD_BYTES, Fit
from sparkops.checkpoint.inspect import GB, Inspection


def inspection(found: Inspection, advice: list[str], bandwidth: float) -> Iterator[str]:
    """What `checkpoint inspect` says."""
    yield found.headers.path
    yield (
        f"  {found.tensors:,} tensors in {len(found.headers.read)} files of {found.file_bytes / GB:,.1f} GB; "
        f"{found.resident_bytes / GIB:,.2f} GiB resident"
    )
    yield f"  {found.count('vision'):,} visual tensors, {found.count('mtp'):,} mtp tensors, {_experts(found)}"
    yield f"  {', '.join(f'{name} {size / GIB:,.2f} GiB' for name, size in found.dtypes.items())}"
    yield (
        f"  a decode step reads {found.decode_bytes / GB:,.2f} GB: at most {found.ceiling(bandwidth):,.0f} tok/s "
        f"at {bandwidth:g} GB/s"
    )
    yield ""
    yield f"  {'':18} {'tensors':>9} {'GiB':>9} {'GB a step':>10}"
    for name, part in found.parts.items():
        size = f"{part.bytes / GIB:9.3f} {part.decode_bytes / GB:10.3f}"
        yield f"  {name.replace('_', ' '):18} {part.tensors:9,} {size}"
    yield ""
    yield from (f"  - {line}" for line in advice)


def _experts(found: Inspection) -> str:
    if not found.experts:
        return "no experts"
    return f"{found.experts} experts a layer, of which a token takes {found.experts_per_token}"


def fitting(name: str, found: Fit) -> Iterator[str]:
    """What `checkpoint fit` says."""
    capacity = found.capacity
    yield name
    yield (
        f"  one request of {capacity.context:,} tokens needs {capacity.need_bytes / GIB:.2f} GiB of KV cache: "
        f"{capacity.need_blocks:,} blocks of {capacity.layout.block_tokens:,} tokens"
    )
    yield (
        f"  a pool of {capacity.pool / GIB:g} GiB has {capacity.blocks:,}: {capacity.tokens:,} tokens, "
        f"{capacity.concurrency:.2f}x"
    )
    yield f"  the longest context that fits: {capacity.max_context:,} tokens"
    left = found.headroom / GIB
    yield (
        f"  {found.weights / GIB:.2f} GiB of weights, {capacity.pool / GIB:g} GiB of KV cache and about "
        f"{OVERHEAD_BYTES / GIB:g} GiB for the engine leave {left:.1f} of {found.memory / GIB:g} GiB"
    )
    yield f"  {shlex.join(found.flags)}"


def troubles(found: Fit) -> Iterator[str]:
    """Why it will not serve, if so."""
    capacity = found.capacity
    if not found.pool_holds_one:
        need = -(-capacity.need_bytes * 100 // GIB) / 100
        yield (
            f"the pool does not hold one request of {capacity.context:,} tokens, and the engine refuses to start: "
            f"--kv-gib {need:g} or more, or --context {capacity.max_context} or less"
        )
    if found.headroom < 0:
        yield f"it does not fit: {-found.headroom / GIB:.1f} GiB more memory would be needed"
