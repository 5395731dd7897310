"""What a checkpoint is: its parts, their bytes, and how many of them one decode step reads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sparkops.checkpoint.config import Config
from sparkops.checkpoint.headers import Headers, Tensors
from sparkops.checkpoint.names import CATEGORIES, Category, category

# DGX Spark's memory (FACTS §1).
BANDWIDTH_GB_S = 273.0
GB = 10**9
FUSED_DIMENSIONS = 3  # experts x rows x columns


@dataclass(frozen=True)
class Part:
    """One category: how many tensors, their bytes, and the bytes of them that a decode step reads."""

    tensors: int
    bytes: int
    decode_bytes: int


@dataclass(frozen=True)
class Inspection:
    """A checkpoint's parts, those that it has. `experts` of a layer, found among the tensors; 0: it has none.

    experts_per_token: as config.json says, or `experts` when it says nothing: then all are taken to be read.
    """

    headers: Headers
    config: Config
    parts: dict[Category, Part]
    dtypes: dict[str, int]
    experts: int
    experts_per_token: int

    @property
    def tensors(self) -> int:
        """How many the engine reads."""
        return sum(part.tensors for part in self.parts.values())

    @property
    def file_bytes(self) -> int:
        """The size of the files that the engine reads."""
        return sum(file.size for file in self.headers.read)

    @property
    def resident_bytes(self) -> int:
        """What of the files stays in memory: all tensors. The engine reports 0.1 to 0.2 GiB more."""
        return sum(part.bytes for part in self.parts.values())

    @property
    def decode_bytes(self) -> int:
        """What one decode step reads, without a draft."""
        return sum(part.decode_bytes for part in self.parts.values())

    def count(self, name: Category) -> int:
        """Tensors of a category."""
        return self.parts[name].tensors if name in self.parts else 0

    def ceiling(self, bandwidth: float = BANDWIDTH_GB_S) -> float:
        """Tokens a second of one stream that a memory of `bandwidth` (10^9 bytes a second) allows; 0: no tensors."""
        return bandwidth * GB / self.decode_bytes if self.decode_bytes else 0.0

    def document(self, advice: list[str], bandwidth: float = BANDWIDTH_GB_S) -> dict[str, Any]:
        """The JSON form; its keys are stable."""
        return {
            "tensors": self.tensors,
            "visual_tensors": self.count("vision"),
            "mtp_tensors": self.count("mtp"),
            "file_bytes": self.file_bytes,
            "resident_bytes": self.resident_bytes,
            "decode_bytes": self.decode_bytes,
            "ceiling_tok_s": self.ceiling(bandwidth),
            "dtypes": self.dtypes,
            "categories": {
                name: {"tensors": part.tensors, "bytes": part.bytes, "decode_bytes": part.decode_bytes}
                for name, part in self.parts.items()
            },
            "advice": advice,
        }


def inspect(headers: Headers) -> Inspection:
    """What the headers say. Raises InputError when config.json has a value of a wrong kind."""
    config = Config(headers.config)
    layers = config.layers
    sorted_in: dict[Category, list[Tensors]] = {}
    dtypes: dict[str, int] = {}
    for tensors in headers.tensors():
        sorted_in.setdefault(category(tensors.name, layers), []).append(tensors)
        dtypes[tensors.dtype] = dtypes.get(tensors.dtype, 0) + tensors.bytes
    experts = max(map(_experts, sorted_in.get("routed_experts", ())), default=0)
    used = min(config.experts_per_token or experts, experts)
    tied = "lm_head" not in sorted_in
    parts = {name: _part(name, sorted_in[name], used, experts, tied=tied) for name in CATEGORIES if name in sorted_in}
    return Inspection(headers, config, parts, dict(sorted(dtypes.items())), experts, used)


def _part(name: Category, held: Iterable[Tensors], used: int, experts: int, *, tied: bool) -> Part:
    count = total = 0
    for tensors in held:
        count += tensors.count
        total += tensors.bytes
    return Part(count, total, _decoded(name, total, used, experts, tied=tied))


def _decoded(name: Category, total: int, used: int, experts: int, *, tied: bool) -> int:
    """The bytes of a category that one decode step reads.

    Everything but the towers, the draft and the gather of one row of the embedding, and of the routed experts the
    share that a token goes through. A tied embedding is lm_head too, and read whole.
    """
    if name in ("vision", "audio", "mtp") or (name == "embedding" and not tied):
        return 0
    return total * used // experts if name == "routed_experts" else total


def _experts(tensors: Tensors) -> int:
    """How many experts of a layer these are: one a tensor, or all in one."""
    if "*" in tensors.name:
        return tensors.count
    return tensors.shape[0] if len(tensors.shape) == FUSED_DIMENSIONS else 0
