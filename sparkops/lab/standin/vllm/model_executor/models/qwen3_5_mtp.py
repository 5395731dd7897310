"""The draft of Qwen3.5: one layer that predicts the tokens after the next."""

from __future__ import annotations

import re

from .interfaces import require

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

PARAMETERS = {
    "mtp.fc.weight",
    "mtp.norm.weight",
    "mtp.pre_fc_norm_embedding.weight",
    "mtp.pre_fc_norm_hidden.weight",
    "mtp.layers.0.input_layernorm.weight",
    "mtp.layers.0.post_attention_layernorm.weight",
    *(
        f"mtp.layers.0.self_attn.{layer}.weight"
        for layer in ("q_proj", "k_proj", "v_proj", "o_proj", "q_norm", "k_norm")
    ),
}


class Qwen3_5MTP:
    """The draft; `sound` when what it proposes is worth something.

    BF16 tensors in a quantized checkpoint are misread unless its `ignore` covers them; such a draft starts all the
    same.
    """

    def __init__(self, config: dict[str, Any]) -> None:
        ignored = config.get("quantization_config", {}).get("ignore", [])
        patterns = [entry[3:] for entry in ignored if entry.startswith("re:")]
        self.sound = "quantization_config" not in config or any(re.match(pattern, "mtp.fc") for pattern in patterns)

    def load_weights(self, names: Iterable[str]) -> None:
        """Take the checkpoint's mtp tensors. Raises ValueError when there are not all."""
        require(PARAMETERS - set(names))
