"""config.json of the four checkpoints: the architecture, the geometry, and how the weights were quantized."""

from __future__ import annotations

from typing import Any

from . import geometry as g


def config(quantization: dict[str, Any] | None = None) -> dict[str, Any]:
    """A checkpoint's config.json. All declare a vision tower and an MTP layer, whether or not they have them."""
    document: dict[str, Any] = {
        "architectures": ["Qwen3_5MoeForConditionalGeneration"],
        "model_type": "qwen3_5_moe",
        "tie_word_embeddings": False,
        "image_token_id": 248_056,
        "video_token_id": 248_057,
        "vision_start_token_id": 248_053,
        "vision_end_token_id": 248_054,
        "text_config": text_config(),
        "vision_config": vision_config(),
    }
    if quantization:
        document["quantization_config"] = quantization
    return document


def text_config() -> dict[str, Any]:
    """The decoder's geometry."""
    kinds = ("linear_attention", "full_attention")
    return {
        "model_type": "qwen3_5_moe_text",
        "dtype": "bfloat16",
        "num_hidden_layers": g.LAYERS,
        "full_attention_interval": g.FULL_ATTENTION_EVERY,
        "layer_types": [kinds[g.is_full_attention(layer)] for layer in range(g.LAYERS)],
        "hidden_size": g.HIDDEN,
        "vocab_size": g.VOCAB,
        "num_experts": g.EXPERTS,
        "num_experts_per_tok": g.EXPERTS_PER_TOKEN,
        "moe_intermediate_size": g.EXPERT_WIDTH,
        "shared_expert_intermediate_size": g.EXPERT_WIDTH,
        "num_attention_heads": g.HEADS,
        "num_key_value_heads": g.KV_HEADS,
        "head_dim": g.HEAD_DIM,
        "attn_output_gate": True,
        "linear_num_key_heads": g.LINEAR_KEY_HEADS,
        "linear_num_value_heads": g.LINEAR_VALUE_HEADS,
        "linear_key_head_dim": g.LINEAR_HEAD_DIM,
        "linear_value_head_dim": g.LINEAR_HEAD_DIM,
        "linear_conv_kernel_dim": g.CONV_KERNEL,
        "mamba_ssm_dtype": "float32",
        "max_position_embeddings": g.CONTEXT,
        "mtp_num_hidden_layers": 1,
        "tie_word_embeddings": False,
        "eos_token_id": 248_044,
    }


def vision_config() -> dict[str, Any]:
    """The vision tower's geometry."""
    return {
        "model_type": "qwen3_5_moe",
        "depth": g.VISION_BLOCKS,
        "hidden_size": g.VISION_HIDDEN,
        "intermediate_size": g.VISION_WIDTH,
        "num_heads": 16,
        "out_hidden_size": g.HIDDEN,
        "in_channels": 3,
        "patch_size": g.VISION_PATCH,
        "temporal_patch_size": g.VISION_TEMPORAL_PATCH,
        "spatial_merge_size": g.VISION_MERGE,
        "num_position_embeddings": g.VISION_POSITIONS,
    }


def nvfp4_quantization(*also_ignored: str) -> dict[str, Any]:
    """The NVFP4 export's block: 191 modules stay BF16, which are lm_head, the routers' gates and the vision tower."""
    weights = {
        "num_bits": 4,
        "type": "float",
        "strategy": "tensor_group",
        "group_size": 16,
        "symmetric": True,
        "dynamic": False,
    }
    return quantization(
        "nvfp4-pack-quantized",
        weights=weights,
        inputs={**weights, "dynamic": "local", "observer": "static_minmax"},
        ignore=["lm_head", *router_gates(), *vision_projections(), *also_ignored],
    )


def fp8_quantization() -> dict[str, Any]:
    """The FP8 export's block: a scale a row of the weights, inputs scaled a token as they come."""
    linear = [
        f"model.language_model.layers.{layer}.linear_attn.{projection}"
        for layer in range(g.LAYERS)
        if not g.is_full_attention(layer)
        for projection in ("in_proj_qkv", "in_proj_z", "in_proj_b", "in_proj_a", "out_proj")
    ]
    weights = {"num_bits": 8, "type": "float", "strategy": "channel", "symmetric": True, "dynamic": False}
    return quantization(
        "float-quantized",
        weights=weights,
        inputs={**weights, "strategy": "token", "dynamic": True},
        ignore=["lm_head", *router_gates(), *linear, *vision_projections()],
    )


def quantization(form: str, *, weights: dict[str, Any], inputs: dict[str, Any], ignore: list[str]) -> dict[str, Any]:
    """A `quantization_config` as compressed-tensors writes it."""
    group = {"targets": ["Linear"], "weights": weights, "input_activations": inputs, "format": form}
    return {
        "quant_method": "compressed-tensors",
        "quantization_status": "compressed",
        "format": form,
        "config_groups": {"group_0": group},
        "ignore": ignore,
        "kv_cache_scheme": None,
    }


def router_gates() -> list[str]:
    """The two gates of each layer's experts."""
    return [
        f"model.language_model.layers.{layer}.mlp.{gate}"
        for layer in range(g.LAYERS)
        for gate in ("gate", "shared_expert_gate")
    ]


def vision_projections() -> list[str]:
    """The vision tower's 110 linear layers."""
    blocks = [
        f"model.visual.blocks.{block}.{projection}"
        for block in range(g.VISION_BLOCKS)
        for projection in ("attn.qkv", "attn.proj", "mlp.linear_fc1", "mlp.linear_fc2")
    ]
    return [*blocks, "model.visual.merger.linear_fc1", "model.visual.merger.linear_fc2"]
