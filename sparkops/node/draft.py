"""A model's own draft (multi-token prediction): which tensors it must have, and what config and index say of it.

The names are those of Qwen3-Next's and Qwen3.5's checkpoints, `mtp.*`, as vLLM 0.24 loads them (qwen3_5_mtp.py). Pure.
"""

from __future__ import annotations

from sparkops.node.api import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    Shape = tuple[str, tuple[int, ...]]  # a tensor's name and shape

PREFIX = "mtp."
FILE = "mtp.safetensors"
# A pattern that matches from the start: compressed-tensors' `ignore` takes a plain "mtp" for a module's whole name.
IGNORED = r"re:^mtp\..*"
COMPRESSED_TENSORS = "compressed-tensors"
LAYERS = "mtp_num_hidden_layers"
DTYPES = {"bfloat16": "BF16", "float16": "F16", "float32": "F32"}
# Each is named when they are looked for.
MOST_EXPERTS = 1 << 14
FUSED = "mlp.experts.gate_up_proj"


def is_draft(name: str) -> bool:
    """Whether a tensor belongs to a draft."""
    return name.startswith(PREFIX)


def text(config: dict[str, Any]) -> dict[str, Any]:
    """The part of a config.json that says the decoder's sizes."""
    nested = config.get("text_config")
    return nested if isinstance(nested, dict) else config


def layers(names: Iterable[str]) -> int:
    """How many layers a draft has: `mtp.layers.0.` and so on."""
    return len({parts[2] for parts in (name.split(".") for name in names) if parts[:2] == ["mtp", "layers"]})


def misfits(config: dict[str, Any], held: dict[str, tuple[str, tuple[int, ...]]]) -> list[str]:
    """Why the tensors `held` ({name: (dtype, shape)}) are no draft for a model with that config; []: they are.

    Raises Failure when the config does not say its sizes.
    """
    count = layers(held)
    wanted = dict(shapes(config, count, {name for name in held if FUSED in name}))
    declared = text(config).get(LAYERS) or config.get(LAYERS)
    found = [f"config.json declares {declared} MTP layers, and the draft has {count}"] * (
        declared not in (None, 0, count)
    )
    found += [f"{name} is missing" for name in wanted if name not in held]
    found += [f"{name} is no tensor of such a draft" for name in held if name not in wanted]
    found += [
        f"{name} is {list(shape)}, and config.json asks for {list(wanted[name])}"
        for name, (_, shape) in held.items()
        if wanted.get(name, shape) != shape
    ]
    named = (
        text(config).get("dtype") or text(config).get("torch_dtype") or config.get("dtype") or config.get("torch_dtype")
    )
    dtypes = [DTYPES[str(named)]] if str(named) in DTYPES else sorted(DTYPES.values())
    found += [
        f"{name} is {dtype}, and a draft is grafted as it was trained: {' or '.join(dtypes)}"
        for name, (dtype, _) in held.items()
        if dtype not in dtypes
    ]
    return found


def shapes(config: dict[str, Any], count: int, fused: set[str]) -> Iterator[Shape]:
    """The tensors of a draft of `count` layers. fused: names of those layers' experts that lie in one tensor."""
    hidden = size(config, "hidden_size")
    yield "mtp.fc.weight", (hidden, 2 * hidden)
    for norm in ("norm", "pre_fc_norm_embedding", "pre_fc_norm_hidden"):
        yield f"mtp.{norm}.weight", (hidden,)
    for number in range(max(count, 1)):
        layer = f"mtp.layers.{number}"
        yield f"{layer}.input_layernorm.weight", (hidden,)
        yield f"{layer}.post_attention_layernorm.weight", (hidden,)
        for name, shape in attention(config):
            yield f"{layer}.self_attn.{name}.weight", shape
        if not text(config).get("num_experts"):
            yield from projections(f"{layer}.mlp", size(config, "intermediate_size"), hidden)
            continue
        for name, shape in experts(config, f"{layer}.{FUSED}" in fused):
            yield f"{layer}.mlp.{name}", shape


def attention(config: dict[str, Any]) -> Iterator[Shape]:
    """Grouped-query attention, whose query projection holds the output gate too."""
    hidden, heads, kv_heads = (
        size(config, f"{name}") for name in ("hidden_size", "num_attention_heads", "num_key_value_heads")
    )
    width = size(config, "head_dim", hidden // heads)
    gate = 2 if text(config).get("attn_output_gate", True) else 1
    yield "q_proj", (gate * heads * width, hidden)
    yield "k_proj", (kv_heads * width, hidden)
    yield "v_proj", (kv_heads * width, hidden)
    yield "o_proj", (hidden, heads * width)
    yield "q_norm", (width,)
    yield "k_norm", (width,)


def experts(config: dict[str, Any], fused: bool) -> Iterator[Shape]:
    """The router, the shared expert, and the routed experts: two tensors, or three each."""
    hidden, width = size(config, "hidden_size"), size(config, "moe_intermediate_size")
    count = size(config, "num_experts", most=MOST_EXPERTS)
    yield "gate.weight", (count, hidden)
    if text(config).get("shared_expert_intermediate_size"):
        yield "shared_expert_gate.weight", (1, hidden)
        yield from projections("shared_expert", size(config, "shared_expert_intermediate_size"), hidden)
    if fused:
        yield "experts.gate_up_proj", (count, 2 * width, hidden)
        yield "experts.down_proj", (count, hidden, width)
        return
    for expert in range(count):
        yield from projections(f"experts.{expert}", width, hidden)


def projections(name: str, width: int, hidden: int) -> Iterator[Shape]:
    """A gated MLP."""
    yield f"{name}.gate_proj.weight", (width, hidden)
    yield f"{name}.up_proj.weight", (width, hidden)
    yield f"{name}.down_proj.weight", (hidden, width)


def size(config: dict[str, Any], name: str, default: int | None = None, most: int = 1 << 24) -> int:
    """A size that the config says. Raises Failure when it does not, or no number that can be."""
    found = text(config).get(name)
    found = default if found is None else found
    if isinstance(found, bool) or not isinstance(found, int) or not 0 < found <= most:
        raise Failure(f"config.json of the target has no {name}: the draft's shapes can't be checked against it")
    return found


def grafted_config(config: dict[str, Any], count: int) -> dict[str, Any]:
    """The config.json of a model with a draft of `count` layers: declared, and left out of the quantization.

    Raises Failure for a quantization that leaves modules out in another way.
    """
    made = dict(config)
    if not text(made).get(LAYERS) and not made.get(LAYERS):
        # A copy: the one that was given stays as it is.
        if text(made) is made:
            made[LAYERS] = count
        else:
            made["text_config"] = {**made["text_config"], LAYERS: count}
    if isinstance(made.get("quantization_config"), dict):
        made["quantization_config"] = left_out(made["quantization_config"])
    elif isinstance(text(made).get("quantization_config"), dict):
        made["text_config"] = {**text(made), "quantization_config": left_out(text(made)["quantization_config"])}
    return made


def left_out(quantization: dict[str, Any]) -> dict[str, Any]:
    """A quantization_config that leaves the draft as it was trained."""
    ignore = quantization.get("ignore") or []
    if quantization.get("quant_method", COMPRESSED_TENSORS) != COMPRESSED_TENSORS or not isinstance(ignore, list):
        raise Failure(
            f"the target is quantized by {str(quantization.get('quant_method'))[:40]!r}: only how {COMPRESSED_TENSORS} "
            "leaves a draft out is known here"
        )
    return quantization if IGNORED in ignore else {**quantization, "ignore": [*ignore, IGNORED]}


def grafted_index(index: dict[str, Any], names: Iterable[str], total: int) -> dict[str, Any]:
    """An index (model.safetensors.index.json) with the draft's tensors, of `total` bytes, in FILE."""
    metadata = index.get("metadata")
    if isinstance(metadata, dict) and isinstance(metadata.get("total_size"), (int, float)):
        metadata = {**metadata, "total_size": int(metadata["total_size"]) + total}
    made = {**index, "weight_map": {**index["weight_map"], **dict.fromkeys(names, FILE)}}
    return made if metadata is None else {**made, "metadata": metadata}
