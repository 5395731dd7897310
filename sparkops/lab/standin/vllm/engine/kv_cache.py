"""How many tokens a KV cache holds: the arithmetic of vLLM 0.24 for hybrid models.

Full-attention layers keep two vectors a token, linear-attention layers one state a request. Both live in blocks of one
size, so a block holds as many tokens as make a page of attention at least as large as a state.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

GIB = 1 << 30
BF16 = 2
FLOAT32 = 4
BLOCK_MULTIPLE = 16


def ceil_div(dividend: int, divisor: int) -> int:
    """Division, rounded up."""
    return -(-dividend // divisor)


class KVCache:
    """The cache of a model (`text`: its text_config) with a draft of `draft` tokens, requests of up to `length` tokens.

    block_size: tokens. block_bytes: over all layers of a block. need: blocks for one request of `length` tokens.
    """

    def __init__(self, text: dict[str, Any], *, length: int, draft: int = 0) -> None:
        token_bytes: int = 2 * text["num_key_value_heads"] * text["head_dim"] * BF16
        full: int = text["num_hidden_layers"] // text["full_attention_interval"]
        linear = text["num_hidden_layers"] - full
        self.length = length
        self.block_size = BLOCK_MULTIPLE * ceil_div(state_bytes(text, draft), BLOCK_MULTIPLE * token_bytes)
        # A draft's own layer shares the blocks of the full-attention layers.
        self.block_bytes = (full + bool(draft)) * self.block_size * token_bytes
        self.state_blocks = ceil_div(linear, full) * (1 + draft)
        self.need = ceil_div(length, self.block_size) + self.state_blocks

    @property
    def need_bytes(self) -> int:
        """Bytes for one request of full length."""
        return self.need * self.block_bytes

    def blocks(self, pool: int) -> int:
        """Blocks in a pool of so many bytes."""
        return pool // self.block_bytes

    def tokens(self, pool: int) -> int:
        """Tokens that the pool holds, over requests of full length."""
        return self.blocks(pool) * self.length // self.need

    def concurrency(self, pool: int) -> float:
        """Requests of full length that fit at once."""
        return self.blocks(pool) / self.need

    def check(self, pool: int) -> None:
        """Raises ValueError when not one request of full length fits."""
        if self.blocks(pool) >= self.need:
            return
        longest = max(0, (self.blocks(pool) - self.state_blocks) * self.block_size)
        raise ValueError(
            f"To serve at least one request with the model's max seq len ({self.length}), "
            f"({round(self.need_bytes / GIB, 2)} GiB KV cache is needed, which is larger than the available "
            f"KV cache memory ({round(pool / GIB, 2)} GiB). Based on the available memory, the estimated maximum "
            f"model length is {longest}. Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when "
            "initializing the engine."
        )


def state_bytes(text: dict[str, Any], draft: int) -> int:
    """A linear-attention layer's state of one request: the convolution's window (BF16) and the recurrent matrix."""
    keys = text["linear_num_key_heads"] * text["linear_key_head_dim"]
    values = text["linear_num_value_heads"] * text["linear_value_head_dim"]
    window = text["linear_conv_kernel_dim"] - 1 + draft
    recurrent = text["linear_num_value_heads"] * text["linear_key_head_dim"] * text["linear_value_head_dim"]
    total: int = (2 * keys + values) * window * BF16 + recurrent * FLOAT32
    return total
