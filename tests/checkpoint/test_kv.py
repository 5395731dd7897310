"""The KV arithmetic for each kind of layer. The expected figures come from vLLM 0.24.0's own kv_cache_utils."""

from __future__ import annotations

from typing import Any

import pytest

from sparkops.checkpoint.config import Config
from sparkops.checkpoint.geometry import Serving, layout, limit
from sparkops.checkpoint.kv import Capacity, Full, Layout, State, Window
from sparkops.errors import InputError

GIB = 1 << 30
LLAMA = {
    **{"model_type": "llama", "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8},
    **{"hidden_size": 4096, "max_position_embeddings": 131_072},
}
GPT_OSS = {
    **{"model_type": "gpt_oss", "num_hidden_layers": 24, "num_attention_heads": 64, "num_key_value_heads": 8},
    **{"head_dim": 64, "sliding_window": 128, "max_position_embeddings": 131_072},
    "layer_types": ["sliding_attention", "full_attention"] * 12,
}
GEMMA3 = {
    "model_type": "gemma3",
    "text_config": {
        **{"num_hidden_layers": 62, "num_attention_heads": 32, "num_key_value_heads": 16, "head_dim": 128},
        **{"sliding_window": 1024, "sliding_window_pattern": 6, "max_position_embeddings": 131_072},
        "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
    },
}
DEEPSEEK = {
    **{"model_type": "deepseek_v3", "num_hidden_layers": 61, "num_attention_heads": 128, "num_key_value_heads": 128},
    **{"kv_lora_rank": 512, "qk_rope_head_dim": 64, "v_head_dim": 128, "max_position_embeddings": 163_840},
    **{"hidden_size": 7168, "num_nextn_predict_layers": 1},
    "rope_scaling": {"type": "yarn", "factor": 40, "original_max_position_embeddings": 4096},
}
MISTRAL = {
    **{"model_type": "mistral", "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8},
    **{"hidden_size": 4096, "sliding_window": 4096, "max_position_embeddings": 32_768},
}


def capacity(config: dict[str, Any], kv_gib: float, context: int, **serving: Any) -> Capacity:
    read = Config(config)
    return Capacity(layout(read, Serving(**serving)), int(kv_gib * GIB), context, limit(read))


@pytest.mark.parametrize(
    ("config", "kv_gib", "context", "serving", "blocks", "need", "need_bytes", "tokens"),
    [
        # GQA: 128 KiB a token over 32 layers.
        (LLAMA, 8, 131_072, {}, 4096, 8192, 16 * GIB, 65_536),
        (LLAMA, 8, 8192, {}, 4096, 512, GIB, 65_536),
        (LLAMA, 8, 8192, {"kv_dtype": "fp8"}, 8192, 512, GIB // 2, 131_072),
        (LLAMA, 8, 8192, {"block_tokens": 64}, 1024, 128, GIB, 65_536),
        # Half of the layers see 128 tokens, and what is computed at once.
        (GPT_OSS, 4, 131_072, {}, 10_922, 8192 + 521, 8713 * 12 * 32_768, 164_302),
        (GPT_OSS, 4, 131_072, {"step_tokens": 2048}, 10_922, 8192 + 137, 8329 * 12 * 32_768, 171_877),
        # Short requests never fill the window: one block more than they have.
        (GPT_OSS, 4, 1024, {}, 10_922, 64 + 65, 129 * 12 * 32_768, 86_698),
        # 10 full and 52 of 1,024: seven groups of ten layers.
        (GEMMA3, 8, 131_072, {}, 6553, 8192 + 6 * 577, 11_654 * 10 * 131_072, 73_701),
        # MLA: one latent of 576 numbers a token and layer; a draft's layer is one more.
        (DEEPSEEK, 8, 163_840, {}, 7639, 10_240, 10_240 * 61 * 18_432, 122_224),
        (DEEPSEEK, 8, 163_840, {"draft": 1}, 7516, 10_240, 10_240 * 62 * 18_432, 120_256),
        # Every layer has the window.
        (MISTRAL, 2, 32_768, {}, 1024, 769, 769 * 32 * 65_536, 43_633),
    ],
)
def test_capacity(
    config: dict[str, Any],
    kv_gib: float,
    context: int,
    serving: dict[str, Any],
    blocks: int,
    need: int,
    need_bytes: int,
    tokens: int,
) -> None:
    found = capacity(config, kv_gib, context, **serving)
    assert (found.blocks, found.need_blocks, found.need_bytes, found.tokens) == (blocks, need, need_bytes, tokens)


def test_the_longest_context_is_the_last_that_fits() -> None:
    for config, gib in ((LLAMA, 3), (GPT_OSS, 2), (GEMMA3, 6), (DEEPSEEK, 5), (MISTRAL, 1)):
        found = capacity(config, gib, 1024)
        longest = found.max_context
        assert 0 < longest <= found.limit
        assert found.layout.need(longest) <= found.blocks
        assert longest == found.limit or found.layout.need(longest + 1) > found.blocks
    assert capacity(LLAMA, 1e-6, 1024).max_context == 0
    assert capacity(LLAMA, 500, 1024).max_context == 131_072


def test_groups_are_padded_when_two_kinds_are_about_as_many() -> None:
    # gpt-oss with a draft: 13 full and 12 windows make two groups of 13, not groups of 12, 1 and 12.
    layers = [Full()] * 13 + [Window(128, 8192)] * 12
    found = Layout.of(layers, block_tokens=16, page_bytes=1)
    assert (found.group_size, dict(found.groups)) == (13, {Full(): 1, Window(128, 8192): 1})
    found = Layout.of([Full()] * 10 + [State(0)] * 30, block_tokens=16, page_bytes=1)
    assert (found.group_size, dict(found.groups)) == (10, {Full(): 1, State(0): 3})


@pytest.mark.parametrize(
    ("more", "context"),
    [
        ({}, 131_072),
        ({"rope_scaling": {"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 8192}}, 131_072),
        ({"rope_scaling": {"rope_type": "linear", "factor": 2.0}}, 262_144),
        ({"rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32_768}}, 131_072),
        ({"rope_parameters": {"rope_type": "default", "rope_theta": 1e6}}, 131_072),
        ({"rope_parameters": {"full_attention": {"rope_type": "linear", "factor": 8.0}}}, 131_072),
        ({"model_max_length": 65_536}, 65_536),
        ({"rope_scaling": None}, 131_072),
    ],
)
def test_the_model_s_own_context(more: dict[str, Any], context: int) -> None:
    assert limit(Config({**LLAMA, **more})) == context
    # Gemma 3 declares what it is after the scaling.
    assert limit(Config(GEMMA3)) == 131_072
    assert limit(Config(DEEPSEEK)) == 163_840


@pytest.mark.parametrize(
    "quantization",
    [
        {"quant_method": "compressed-tensors", "kv_cache_scheme": {"num_bits": 8, "type": "float", "dynamic": False}},
        {"quant_method": "modelopt", "quantization": {"kv_cache_quant_algo": "FP8"}},
        {"quant_method": "modelopt", "kv_cache_quant_algo": "fp8"},
    ],
)
def test_a_checkpoint_may_bring_the_scales_of_an_fp8_cache(quantization: dict[str, Any]) -> None:
    found = capacity({**LLAMA, "quantization_config": quantization}, 8, 8192)
    assert found.need_bytes == GIB // 2


@pytest.mark.parametrize(
    ("more", "serving", "message"),
    [
        ({"num_hidden_layers": None}, {}, "no num_hidden_layers"),
        ({"num_hidden_layers": "32"}, {}, "num_hidden_layers is '32', no whole number"),
        ({"num_hidden_layers": True}, {}, "no whole number"),
        ({"num_hidden_layers": 2**40}, {}, "num_hidden_layers is 1,099,511,627,776"),
        ({"num_key_value_heads": [8, 4]}, {}, "num_key_value_heads"),
        ({"num_attention_heads": 0}, {}, "no num_attention_heads"),
        ({"max_position_embeddings": None}, {}, "no max_position_embeddings"),
        ({"rope_scaling": {"rope_type": "linear", "factor": "2"}}, {}, "no number"),
        ({"layer_types": ["full_attention"]}, {}, "no list of 32"),
        ({"layer_types": ["chunked_attention"] * 32}, {}, "'chunked_attention'"),
        ({"linear_num_value_heads": 32}, {}, "neither layer_types"),
        ({"full_attention_interval": 4}, {}, "no linear_num_key_heads"),
        ({"index_topk": 2048}, {}, "index_topk is not known"),
        ({}, {"draft": 3}, "declares no MTP layer"),
        ({}, {"kv_dtype": "turboquant_4bit"}, "'turboquant_4bit' is not known"),
    ],
)
def test_what_is_not_known_is_said(more: dict[str, Any], serving: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        capacity({**LLAMA, **more}, 8, 1024, **serving)
    with pytest.raises(InputError, match=r"no config\.json"):
        layout(Config({}), Serving())
