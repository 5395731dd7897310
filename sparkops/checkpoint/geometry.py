"""From config.json to the layers' caches, as vLLM 0.24 lays them out on a DGX Spark.

Attention of compute capability 12 is FLASH_ATTN or TRITON_MLA (platforms/cuda.py), whose blocks are multiples of 16.
"""

from __future__ import annotations

from dataclasses import dataclass

from sparkops.checkpoint.config import Config
from sparkops.checkpoint.kv import Full, Kind, Layout, State, Window, ceil_div
from sparkops.errors import InputError

BLOCK_TOKENS = 16
# max_num_batched_tokens of `vllm serve` on a GPU of 70 GiB or more (engine/arg_utils.py).
STEP_TOKENS = 8192
HALF = 2  # bytes of a 16-bit number; float32 checkpoints are served in 16 bits too
FLOAT32 = 4
KV_BYTES = {"auto": HALF, "bfloat16": HALF, "float16": HALF, "half": HALF, "fp8": 1, "fp8_e4m3": 1, "fp8_e5m2": 1}
FULL = ("full_attention", "attention")
LINEAR = ("linear_attention",)
SLIDING = ("sliding_attention", "sliding_window_attention", "local_attention")
# Configs with these have caches of several sizes or of their own, which this does not know.
UNKNOWN = (
    *("index_topk", "compress_ratios", "block_configs", "attention_chunk_size", "hybrid_override_pattern"),
    *("global_head_dim", "num_global_key_value_heads", "num_kv_shared_layers", "mamba_d_state", "ssm_cfg"),
    *("state_size", "attn_layer_period", "cross_attention_layers", "linear_attn_config"),
)


@dataclass(frozen=True)
class Serving:
    """What of the command line decides the cache: tokens that a draft proposes, the KV cache's dtype (`auto`: as the
    checkpoint says), tokens computed at once, tokens of a block at least."""

    draft: int = 0
    kv_dtype: str = "auto"
    step_tokens: int = STEP_TOKENS
    block_tokens: int = BLOCK_TOKENS


def layout(config: Config, serving: Serving) -> Layout:
    """The cache of a model. Raises InputError when config.json does not say, or is of a kind that is not known."""
    if not config.document:
        raise InputError("there is no config.json: it says what a token costs in the KV cache")
    strange = [name for name in UNKNOWN if config.text.get(name)]
    if strange:
        raise InputError(
            f"{config.model_type}: the KV cache of a model with {' and '.join(strange)} is not known here",
            where="config.json",
            hint="start the engine once: its log says how many tokens a pool holds",
        )
    token_bytes = _token_bytes(config, serving)
    layers = _layers(config, serving)
    block = serving.block_tokens
    if any(isinstance(kind, State) for kind in layers):
        # A block holds as many tokens as make a page of attention at least as large as a state.
        block *= ceil_div(_state_bytes(config, serving.draft), block * token_bytes)
    return Layout.of(layers, block_tokens=block, page_bytes=block * token_bytes)


def limit(config: Config) -> int:
    """The longest context of the model, in tokens. Raises InputError when config.json does not say."""
    found = config.context()
    if not found:
        raise InputError("there is no max_position_embeddings: give --context", where="config.json")
    return found


def _layers(config: Config, serving: Serving) -> list[Kind]:
    """The kind of each layer, the draft's at the end: a draft's layers attend to all tokens."""
    count = config.needed("num_hidden_layers", "n_layer", "num_layers")
    if count > 10_000:
        raise InputError(f"num_hidden_layers is {count:,}", where="config.json")
    named = _names(config, count)
    kinds: list[Kind] = []
    for name in named:
        if name in FULL:
            kinds.append(Full())
        elif name in LINEAR:
            kinds.append(State(serving.draft))
        elif name in SLIDING:
            window = config.number("sliding_window")
            kinds.append(Window(window, serving.step_tokens) if window else Full())
        else:
            raise InputError(f"layer_types has {name[:40]!r}, whose cache is not known here", where="config.json")
    if serving.draft:
        if not config.draft_layers:
            raise InputError(
                "--speculative: config.json declares no MTP layer",
                hint="leave it out, or give it a draft first: sparkops checkpoint graft-mtp",
            )
        kinds += [Full()] * config.draft_layers
    return kinds


def _names(config: Config, count: int) -> list[str]:
    """What each layer is, in the words of layer_types."""
    listed = config.text.get("layer_types")
    if listed is not None:
        if not isinstance(listed, list) or len(listed) < count:
            raise InputError(f"layer_types is no list of {count} kinds", where="config.json")
        return [str(name) for name in listed[:count]]
    if every := config.number("full_attention_interval"):
        return [FULL[0] if at % every == every - 1 else LINEAR[0] for at in range(count)]
    if config.number("linear_num_value_heads"):
        raise InputError("linear attention, and neither layer_types nor full_attention_interval", where="config.json")
    if not config.number("sliding_window") or config.text.get("use_sliding_window") is False:
        return [FULL[0]] * count
    if every := config.number("sliding_window_pattern", "_sliding_window_pattern"):
        return [FULL[0] if at % every == every - 1 else SLIDING[0] for at in range(count)]
    if config.model_type in ("gemma2", "gpt_oss"):
        return [SLIDING[0] if at % 2 == 0 else FULL[0] for at in range(count)]
    # Qwen2's words: the layers below max_window_layers attend to all tokens.
    full = config.number("max_window_layers") or 0
    return [FULL[0]] * min(full, count) + [SLIDING[0]] * max(count - full, 0)


def _token_bytes(config: Config, serving: Serving) -> int:
    """Bytes that one token takes in one layer of attention."""
    kv_dtype = serving.kv_dtype if serving.kv_dtype != "auto" else _declared_kv_dtype(config)
    if kv_dtype not in KV_BYTES:
        raise InputError(f"the KV cache's dtype {kv_dtype[:40]!r} is not known here: {', '.join(KV_BYTES)} are")
    if latent := config.number("kv_lora_rank"):
        # MLA: one latent for all heads, and the rotated part of the key.
        return (latent + config.needed("qk_rope_head_dim")) * KV_BYTES[kv_dtype]
    queries = config.needed("num_attention_heads", "n_head", "num_heads")
    heads = config.number("num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num") or queries
    size = config.number("head_dim", "hidden_size_per_head") or config.needed("hidden_size", "n_embd") // queries
    values = config.number("v_head_dim") or size
    return heads * (size + values) * KV_BYTES[kv_dtype]


def _declared_kv_dtype(config: Config) -> str:
    """What `--kv-cache-dtype auto` comes to: a checkpoint may bring the scales of an FP8 cache."""
    quantization = config.quantization
    inner = quantization.get("quantization")
    places = [inner, quantization] if isinstance(inner, dict) else [quantization]
    for place in places:
        scheme = place.get("kv_cache_scheme") or place.get("kv_cache_quant_algo")
        if isinstance(scheme, dict):
            return "fp8" if scheme.get("num_bits") == 8 else f"{scheme.get('num_bits')} bits"
        if isinstance(scheme, str):
            return scheme.lower()
    return "auto"


def _state_bytes(config: Config, draft: int) -> int:
    """A gated delta network's state: the convolution's window, as wide as the draft is long, and the matrix."""
    key_heads, value_heads = config.needed("linear_num_key_heads"), config.needed("linear_num_value_heads")
    key, value = config.needed("linear_key_head_dim"), config.needed("linear_value_head_dim")
    window = config.needed("linear_conv_kernel_dim") - 1 + draft
    matrix = FLOAT32 if config.text.get("mamba_ssm_dtype") == "float32" else HALF
    return (2 * key_heads * key + value_heads * value) * window * HALF + value_heads * key * value * matrix
