"""What the texts of a known failure may name, beside the groups of its regexes: figures of the node and of the copy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from sparkops.serving.evidence import Evidence
from sparkops.serving.signs import GIB, minimum_driver


class Known(dict[str, Any]):
    """Values by name; one that is not known says so."""

    def __missing__(self, name: str) -> str:
        return "(not known)"


def values(evidence: Evidence, found: Mapping[str, Any]) -> Known:
    """All values for a row's texts; `found` (a row's groups, its signs' values) wins."""
    recipe, checkpoint = evidence.recipe, evidence.checkpoint
    served = recipe.get("served_model_name") or evidence.option("--served-model-name")
    words = evidence.release.words
    path = checkpoint.path if checkpoint else next(iter(words[2:3]), None)
    known = Known(
        service=evidence.service,
        unit=evidence.unit,
        release=evidence.release.number,
        host=evidence.host,
        port=evidence.port,
        systemctl="systemctl --user" if evidence.scope == "user" else "sudo systemctl",
        restarts=evidence.number("NRestarts"),
        uptime=span(evidence.uptime or 0),
        error=evidence.http.error or "no answer",
        minimum_driver=minimum_driver(evidence),
        available=gib(evidence.memory.available),
        memory_free=gib(evidence.memory.free),
        memory_total=gib(evidence.memory.total),
        disks=", ".join(f"{disk.path} has {gib(disk.free)} free" for disk in evidence.disks if disk.free is not None),
        gpu_processes=processes(evidence),
        wanted_revision=recipe.get("model_revision") or "of the recipe",
        found_revision=(checkpoint.revision if checkpoint else None) or "another",
        max_model_len=recipe.get("max_model_len"),
        ready_within=f"{evidence.ready_within or 0:g}",
        visual_count=f" ({checkpoint.visual} of {checkpoint.tensors:,})" if checkpoint and checkpoint.tensors else "",
        reason="see the line",
        url_said=f": {found['url'].rstrip('.')}" if "url" in found else "",
    )
    if path:
        known["model_path"] = path
    if served:
        known["served_model"] = served
    return Known({**known, **found, **kv_pool(found), **fitting(found)})


def kv_pool(found: Mapping[str, Any]) -> dict[str, Any]:
    """From GiB that a request needs: bytes of a pool that holds it, in whole GiB; and the largest length that fits."""
    if "needed" not in found or "given" not in found:
        return {}
    needed, given, length = float(found["needed"]), float(found["given"]), int(found["length"])
    # The log's figures are rounded, and blocks are whole: stay below.
    about = int(length * given / needed * 0.99) // 1000 * 1000
    largest = f"{int(found['longest']):,}" if "longest" in found else f"some {about:,}"
    return {"needed_bytes": math.ceil(needed) * GIB, "largest": largest}


def fitting(found: Mapping[str, Any]) -> dict[str, Any]:
    """The utilization that what was free allows, rounded down."""
    if "free" not in found or "total" not in found:
        return {}
    free, total = float(found["free"]), float(found["total"])
    desired = found.get("desired") or f"{float(found['utilization']) * total:.2f}"
    return {"fitting": f"{math.floor(100 * free / total) / 100:.2f}", "desired": desired}


def processes(evidence: Evidence) -> str:
    """Who is on the GPU, as a sentence to append."""
    listed = evidence.driver.processes if evidence.driver else []
    return f" On the GPU now: {', '.join(listed[:4])}." if listed else ""


def gib(size: int | None) -> str:
    """Bytes as people read them."""
    return f"{(size or 0) / GIB:.1f} GiB"


def span(seconds: float) -> str:
    """A time as people read it: 45 s, 12 min, 3.5 h, 12 d."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f}".removesuffix(".0") + f" {unit}"
    return f"{seconds:.0f} s"
