"""Qwen3.5: a language model with a vision tower, dense or a mixture of experts."""

from __future__ import annotations

from .interfaces import MultiModalModel, Part
from .qwen3_vl import Qwen3_VisionTransformer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .interfaces import MultiModalConfig


class Qwen3_5LanguageModel(Part):
    """The decoder."""

    def __init__(self, config: dict[str, Any]) -> None:
        layers = range(config["num_hidden_layers"])
        norms = ("input_layernorm", "post_attention_layernorm")
        super().__init__(
            [
                "language_model.embed_tokens.weight",
                "language_model.norm.weight",
                *(f"language_model.layers.{layer}.{norm}.weight" for layer in layers for norm in norms),
            ]
        )


class Qwen3_5MoeLanguageModel(Qwen3_5LanguageModel):
    """The decoder with routed experts."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__(config)
        layers = range(config["num_hidden_layers"])
        self.parameters.update(f"language_model.layers.{layer}.mlp.gate.weight" for layer in layers)


class Qwen3_5ForConditionalGeneration(MultiModalModel):
    """The dense model."""

    def __init__(self, config: dict[str, Any], multimodal_config: MultiModalConfig) -> None:
        super().__init__(config, multimodal_config)
        self.lm_head = Part(["lm_head.weight"])
        with self._mark_tower_model("visual"):
            self.visual = Qwen3_VisionTransformer(config["vision_config"])
        self.language_model = Qwen3_5LanguageModel(config["text_config"])


class Qwen3_5MoeForConditionalGeneration(MultiModalModel):
    """The mixture of experts."""

    def __init__(self, config: dict[str, Any], multimodal_config: MultiModalConfig) -> None:
        super().__init__(config, multimodal_config)
        self.lm_head = Part(["lm_head.weight"])
        with self._mark_tower_model("visual"):
            self.visual = Qwen3_VisionTransformer(config["vision_config"])
        self.language_model = Qwen3_5MoeLanguageModel(config["text_config"])
