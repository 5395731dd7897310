"""The sizes of Qwen3.5-35B-A3B, as its published config.json declares them; the four checkpoints share them."""

from __future__ import annotations

LAYERS = 40
FULL_ATTENTION_EVERY = 4
HIDDEN = 2048
VOCAB = 248_320
EXPERTS = 256
EXPERTS_PER_TOKEN = 8
EXPERT_WIDTH = 512
HEADS = 16
KV_HEADS = 2
HEAD_DIM = 256
LINEAR_KEY_HEADS = 16
LINEAR_VALUE_HEADS = 32
LINEAR_HEAD_DIM = 128
CONV_KERNEL = 4
CONTEXT = 262_144

KEY_WIDTH = LINEAR_KEY_HEADS * LINEAR_HEAD_DIM
VALUE_WIDTH = LINEAR_VALUE_HEADS * LINEAR_HEAD_DIM
CONV_CHANNELS = 2 * KEY_WIDTH + VALUE_WIDTH

VISION_BLOCKS = 27
VISION_HIDDEN = 1152
VISION_WIDTH = 4304
VISION_POSITIONS = 2304
VISION_PATCH = 16
VISION_TEMPORAL_PATCH = 2
VISION_MERGE = 2


def is_full_attention(layer: int) -> bool:
    """Every fourth layer attends to all tokens; the others carry a gated-delta state."""
    return layer % FULL_ATTENTION_EVERY == FULL_ATTENTION_EVERY - 1
