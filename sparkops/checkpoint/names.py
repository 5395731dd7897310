"""What part of a model a tensor is, told from its name as Hugging Face checkpoints have it."""

from __future__ import annotations

from typing import Literal, get_args

Category = Literal[
    "routed_experts",
    "shared_experts",
    "attention",
    "linear_attention",
    "mlp",
    "router",
    "norm",
    "lm_head",
    "embedding",
    "vision",
    "audio",
    "mtp",
    "other",
]
CATEGORIES: tuple[Category, ...] = get_args(Category)

VISION = {
    *("visual", "vision", "vision_tower", "vision_model", "vision_encoder", "vision_embed_tokens", "vit"),
    *("vision_projection", "multi_modal_projector", "mm_projector", "patch_merger", "embed_vision", "image_newline"),
}
AUDIO = {"audio_tower", "audio_encoder", "audio_model", "audio_projection", "embed_audio", "audio_projector"}
EMBEDDING = {"embed_tokens", "wte", "word_embeddings", "tok_embeddings", "embed_in", "embeddings"}
LM_HEAD = {"lm_head", "embed_out"}
LINEAR_ATTENTION = {"linear_attn", "mamba", "mixer", "ssm"}
ATTENTION = {"self_attn", "self_attention", "attention", "attn"}
MLP = {"mlp", "feed_forward", "ffn", "block_sparse_moe", "moe"}
ROUTER = {"gate", "router", "shared_expert_gate"}


def category(name: str, layers: int | None = None) -> Category:
    """The category of a tensor. `layers`: the model's own; what is numbered behind them is a draft (DeepSeek's way).

    >>> category("model.language_model.layers.3.mlp.experts.*.up_proj.weight_packed")
    'routed_experts'
    """
    parts = name.split(".")
    words = set(parts)
    # The towers first, and the draft: they have attention and experts of their own.
    if words & VISION:
        return "vision"
    if words & AUDIO:
        return "audio"
    if any(part.startswith("mtp") for part in parts) or _behind(parts, layers):
        return "mtp"
    if words & ROUTER:
        return "router"
    if any(part.startswith("shared_expert") for part in parts):
        return "shared_experts"
    if "experts" in words:
        return "routed_experts"
    if words & LINEAR_ATTENTION:
        return "linear_attention"
    if words & ATTENTION:
        return "attention"
    if words & LM_HEAD:
        return "lm_head"
    if words & EMBEDDING:
        return "embedding"
    if any("norm" in part or part == "ln_f" for part in parts):
        return "norm"
    return "mlp" if words & MLP else "other"


def layer(name: str) -> int | None:
    """The number of the decoder layer that a tensor is in: `model.layers.3.` -> 3."""
    parts = name.split(".")
    at = next((at for at, part in enumerate(parts[:-1]) if part in ("layers", "h")), None)
    return int(parts[at + 1]) if at is not None and parts[at + 1].isdecimal() else None


def _behind(parts: list[str], layers: int | None) -> bool:
    number = None if layers is None else layer(".".join(parts))
    return number is not None and layers is not None and number >= layers
