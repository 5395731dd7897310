"""Which tensors each checkpoint holds: names, dtypes and shapes, in the order of the file.

The make-up gives the published tensor counts and sizes exactly: BF16 693 tensors, NVFP4 124,756 and FP8 62,546 (333 of
them the vision tower), the MTP draft 19 tensors of 1,689,281,536 bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from . import geometry as g

Tensor = tuple[str, str, tuple[int, ...]]  # name, safetensors dtype, shape
Linear = Callable[[str, int, int], Iterator[Tensor]]  # name, rows (outputs), columns (inputs)

NVFP4_GROUP = 16  # weights that share one F8 scale
FP4_PER_BYTE = 2


def bf16(name: str, rows: int, columns: int) -> Iterator[Tensor]:
    """A projection as it was trained."""
    yield f"{name}.weight", "BF16", (rows, columns)


def nvfp4(name: str, rows: int, columns: int) -> Iterator[Tensor]:
    """compressed-tensors' nvfp4-pack-quantized: two weights a byte, an F8 scale for each group of 16."""
    yield f"{name}.weight_packed", "U8", (rows, columns // FP4_PER_BYTE)
    yield f"{name}.weight_scale", "F8_E4M3", (rows, columns // NVFP4_GROUP)
    yield f"{name}.weight_global_scale", "F32", (1,)
    yield f"{name}.input_global_scale", "F32", (1,)


def fp8(name: str, rows: int, columns: int) -> Iterator[Tensor]:
    """compressed-tensors' float-quantized: F8 weights, one BF16 scale a row."""
    yield f"{name}.weight", "F8_E4M3", (rows, columns)
    yield f"{name}.weight_scale", "BF16", (rows, 1)


def bf16_tensors() -> Iterator[Tensor]:
    """Qwen-AgentWorld-35B-A3B: language only, its experts fused a layer."""
    return language_model(linear=bf16, full=bf16, expert=bf16, fused=True)


def nvfp4_tensors() -> Iterator[Tensor]:
    """Its NVFP4 export: every projection but lm_head and the routers, and a vision tower."""
    yield from language_model(linear=nvfp4, full=nvfp4, expert=nvfp4, fused=False)
    yield from vision_tower()


def fp8_tensors() -> Iterator[Tensor]:
    """Qwen3.6-35B-A3B-FP8: experts and full attention in F8, linear attention as trained, and a vision tower."""
    yield from language_model(linear=bf16, full=fp8, expert=fp8, fused=False)
    yield from vision_tower()


def language_model(*, linear: Linear, full: Linear, expert: Linear, fused: bool) -> Iterator[Tensor]:
    """The decoder: linear attention by `linear`, full attention by `full`, experts by `expert`."""
    root = "model.language_model"
    yield f"{root}.embed_tokens.weight", "BF16", (g.VOCAB, g.HIDDEN)
    for index in range(g.LAYERS):
        layer = f"{root}.layers.{index}"
        if g.is_full_attention(index):
            yield from full_attention(f"{layer}.self_attn", full)
        else:
            yield from linear_attention(f"{layer}.linear_attn", linear)
        yield from layer_norms(layer)
        yield from experts(f"{layer}.mlp", expert, fused=fused)
    yield f"{root}.norm.weight", "BF16", (g.HIDDEN,)
    yield "lm_head.weight", "BF16", (g.VOCAB, g.HIDDEN)


def full_attention(name: str, project: Linear) -> Iterator[Tensor]:
    """Grouped-query attention; the query projection also holds the output gate, hence twice its width."""
    yield from project(f"{name}.q_proj", 2 * g.HEADS * g.HEAD_DIM, g.HIDDEN)
    yield from project(f"{name}.k_proj", g.KV_HEADS * g.HEAD_DIM, g.HIDDEN)
    yield from project(f"{name}.v_proj", g.KV_HEADS * g.HEAD_DIM, g.HIDDEN)
    yield from project(f"{name}.o_proj", g.HIDDEN, g.HEADS * g.HEAD_DIM)
    yield f"{name}.q_norm.weight", "BF16", (g.HEAD_DIM,)
    yield f"{name}.k_norm.weight", "BF16", (g.HEAD_DIM,)


def linear_attention(name: str, project: Linear) -> Iterator[Tensor]:
    """A gated delta network."""
    yield from project(f"{name}.in_proj_qkv", g.CONV_CHANNELS, g.HIDDEN)
    yield from project(f"{name}.in_proj_z", g.VALUE_WIDTH, g.HIDDEN)
    yield from project(f"{name}.in_proj_b", g.LINEAR_VALUE_HEADS, g.HIDDEN)
    yield from project(f"{name}.in_proj_a", g.LINEAR_VALUE_HEADS, g.HIDDEN)
    yield from project(f"{name}.out_proj", g.HIDDEN, g.VALUE_WIDTH)
    yield f"{name}.conv1d.weight", "BF16", (g.CONV_CHANNELS, 1, g.CONV_KERNEL)
    yield f"{name}.A_log", "BF16", (g.LINEAR_VALUE_HEADS,)
    yield f"{name}.dt_bias", "BF16", (g.LINEAR_VALUE_HEADS,)
    yield f"{name}.norm.weight", "BF16", (g.LINEAR_HEAD_DIM,)


def layer_norms(layer: str) -> Iterator[Tensor]:
    """The two norms of a decoder layer."""
    yield f"{layer}.input_layernorm.weight", "BF16", (g.HIDDEN,)
    yield f"{layer}.post_attention_layernorm.weight", "BF16", (g.HIDDEN,)


def experts(name: str, project: Linear, *, fused: bool) -> Iterator[Tensor]:
    """The router, the shared expert, and the routed experts: two fused tensors, or three projections each."""
    yield f"{name}.gate.weight", "BF16", (g.EXPERTS, g.HIDDEN)
    yield f"{name}.shared_expert_gate.weight", "BF16", (1, g.HIDDEN)
    yield from expert_projections(f"{name}.shared_expert", project)
    if fused:
        yield f"{name}.experts.gate_up_proj", "BF16", (g.EXPERTS, 2 * g.EXPERT_WIDTH, g.HIDDEN)
        yield f"{name}.experts.down_proj", "BF16", (g.EXPERTS, g.HIDDEN, g.EXPERT_WIDTH)
        return
    for expert in range(g.EXPERTS):
        yield from expert_projections(f"{name}.experts.{expert}", project)


def expert_projections(name: str, project: Linear) -> Iterator[Tensor]:
    """One expert's gate, up and down projection."""
    yield from project(f"{name}.gate_proj", g.EXPERT_WIDTH, g.HIDDEN)
    yield from project(f"{name}.up_proj", g.EXPERT_WIDTH, g.HIDDEN)
    yield from project(f"{name}.down_proj", g.HIDDEN, g.EXPERT_WIDTH)


def vision_tower() -> Iterator[Tensor]:
    """27 blocks of 12 tensors, the embedding of patches and positions, and the merger: 333."""
    root, hidden, merged = "model.visual", g.VISION_HIDDEN, g.VISION_HIDDEN * g.VISION_MERGE**2
    patch = (hidden, 3, g.VISION_TEMPORAL_PATCH, g.VISION_PATCH, g.VISION_PATCH)
    yield f"{root}.patch_embed.proj.weight", "BF16", patch
    yield f"{root}.patch_embed.proj.bias", "BF16", (hidden,)
    yield f"{root}.pos_embed.weight", "BF16", (g.VISION_POSITIONS, hidden)
    for index in range(g.VISION_BLOCKS):
        block = f"{root}.blocks.{index}"
        yield from biased(f"{block}.norm1", hidden)
        yield from biased(f"{block}.norm2", hidden)
        yield from biased(f"{block}.attn.qkv", 3 * hidden, hidden)
        yield from biased(f"{block}.attn.proj", hidden, hidden)
        yield from biased(f"{block}.mlp.linear_fc1", g.VISION_WIDTH, hidden)
        yield from biased(f"{block}.mlp.linear_fc2", hidden, g.VISION_WIDTH)
    yield from biased(f"{root}.merger.norm", hidden)
    yield from biased(f"{root}.merger.linear_fc1", merged, merged)
    yield from biased(f"{root}.merger.linear_fc2", g.HIDDEN, merged)


def biased(name: str, rows: int, *columns: int) -> Iterator[Tensor]:
    """A weight and its bias."""
    yield f"{name}.weight", "BF16", (rows, *columns)
    yield f"{name}.bias", "BF16", (rows,)


def draft_tensors() -> Iterator[Tensor]:
    """The MTP head of Qwen3.6-35B-A3B: one full-attention layer that drafts the next token."""
    yield "mtp.fc.weight", "BF16", (g.HIDDEN, 2 * g.HIDDEN)
    for norm in ("norm", "pre_fc_norm_embedding", "pre_fc_norm_hidden"):
        yield f"mtp.{norm}.weight", "BF16", (g.HIDDEN,)
    layer = "mtp.layers.0"
    yield from layer_norms(layer)
    yield from full_attention(f"{layer}.self_attn", bf16)
    yield from experts(f"{layer}.mlp", bf16, fused=True)
