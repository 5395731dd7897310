"""What a config.json declares, whatever the family calls it. It states an intent; the tensors are the fact."""

from __future__ import annotations

from typing import Any

from sparkops.errors import InputError

TEXT = ("text_config", "llm_config", "language_config", "thinker_config")
EXPERTS = ("num_experts", "n_routed_experts", "num_local_experts", "moe_num_experts", "num_routed_experts")
EXPERTS_PER_TOKEN = ("num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_top_k", "moe_k", "top_k_experts")
DRAFT_LAYERS = ("mtp_num_hidden_layers", "num_nextn_predict_layers")
LENGTHS = (
    *("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "model_max_length"),
    *("max_sequence_length", "max_seq_length", "seq_len"),
)
VISION = ("vision_config", "visual", "vision_tower_config")


class Config:
    """A checkpoint's config.json; what it lacks is None. Raises InputError when a value is of the wrong kind."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document
        nested = (document.get(key) for key in TEXT)
        self.text: dict[str, Any] = next((part for part in nested if isinstance(part, dict)), document)

    def number(self, *names: str) -> int | None:
        """The first of `names` that the text model has; a positive number, or 0."""
        for name in names:
            value = self.text.get(name, self.document.get(name))
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
                raise InputError(f"{name} is {str(value)[:40]!r}, no whole number", where="config.json")
            return value
        return None

    def needed(self, *names: str) -> int:
        """The same, not 0. Raises InputError when it is not there."""
        found = self.number(*names)
        if not found:
            raise InputError(f"there is no {' or '.join(names)}", where="config.json")
        return found

    @property
    def model_type(self) -> str:
        """What the family calls itself."""
        return str(self.document.get("model_type") or self.text.get("model_type") or "?")

    @property
    def layers(self) -> int | None:
        """Decoder layers, drafts not counted."""
        return self.number("num_hidden_layers", "n_layer", "num_layers")

    @property
    def experts(self) -> int | None:
        """Routed experts a layer."""
        return self.number(*EXPERTS)

    @property
    def experts_per_token(self) -> int | None:
        """Of these, those that a token goes through."""
        return self.number(*EXPERTS_PER_TOKEN)

    @property
    def draft_layers(self) -> int:
        """MTP layers that it declares."""
        return self.number(*DRAFT_LAYERS) or 0

    @property
    def has_vision(self) -> bool:
        """Whether it declares a vision tower."""
        return any(isinstance(self.document.get(key), dict) for key in VISION)

    @property
    def quantization(self) -> dict[str, Any]:
        """Its quantization_config, or {}."""
        found = self.document.get("quantization_config") or self.text.get("quantization_config")
        return found if isinstance(found, dict) else {}

    def context(self) -> int | None:
        """The longest context that the engine takes without being told otherwise, in tokens.

        vLLM 0.24's rule (config/model.py, _get_and_verify_max_len): the smallest of the lengths, scaled by RoPE's
        factor; YaRN's factor scales the original length.
        """
        named = [self.number(name) for name in LENGTHS]
        lengths = [length for length in named if length]
        if not lengths:
            return None
        rope = self.text.get("rope_parameters") or self.text.get("rope_scaling") or {}
        rope = rope if isinstance(rope, dict) else {}
        kind, factor = rope.get("rope_type", rope.get("type", "default")), rope.get("factor") or 1
        original = rope.get("original_max_position_embeddings")
        if kind in ("su", "longrope", "llama3", "default", "mrope") or "gemma3" in self.model_type:
            return min(lengths)
        if not isinstance(factor, (int, float)):
            raise InputError(f"RoPE's factor is {str(factor)[:40]!r}, no number", where="config.json")
        base = original if kind == "yarn" and isinstance(original, int) else min(lengths)
        return int(base * factor)
