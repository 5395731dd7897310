"""The vision tower that Qwen's multimodal models share."""

from __future__ import annotations

from .interfaces import Part

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

BLOCK = ("norm1", "norm2", "attn.qkv", "attn.proj", "mlp.linear_fc1", "mlp.linear_fc2")
MERGER = ("norm", "linear_fc1", "linear_fc2")


class Qwen3_VisionTransformer(Part):
    """Patches and positions, `depth` blocks, and a merger; every layer has a weight and a bias."""

    def __init__(self, config: dict[str, Any]) -> None:
        layers = [
            "visual.patch_embed.proj",
            *(f"visual.blocks.{block}.{layer}" for block in range(config["depth"]) for layer in BLOCK),
            *(f"visual.merger.{layer}" for layer in MERGER),
        ]
        super().__init__(
            ["visual.pos_embed.weight", *(f"{layer}.{kind}" for layer in layers for kind in ("weight", "bias"))]
        )
