"""Small checkpoints to graft with: real bytes, the names and proportions of the large ones."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Shapes = dict[str, tuple[str, list[int]]]
SIZES = {"BF16": 2, "F32": 4, "U8": 1, "F8_E4M3": 1}
CONFIG: dict[str, Any] = {
    "architectures": ["Qwen3_5MoeForConditionalGeneration"],
    "text_config": {
        **{"dtype": "bfloat16", "num_hidden_layers": 1, "hidden_size": 64, "head_dim": 16, "num_attention_heads": 4},
        **{"num_key_value_heads": 2, "num_experts": 8, "moe_intermediate_size": 16, "num_experts_per_tok": 2},
        **{"shared_expert_intermediate_size": 16, "mtp_num_hidden_layers": 1},
    },
    "quantization_config": {"quant_method": "compressed-tensors", "ignore": ["lm_head"]},
}
LAYER = "mtp.layers.0"
DRAFT: Shapes = {
    "mtp.fc.weight": ("BF16", [64, 128]),
    **{f"mtp.{name}.weight": ("BF16", [64]) for name in ("norm", "pre_fc_norm_embedding", "pre_fc_norm_hidden")},
    **{f"{LAYER}.{name}.weight": ("BF16", [64]) for name in ("input_layernorm", "post_attention_layernorm")},
    f"{LAYER}.self_attn.q_proj.weight": ("BF16", [128, 64]),
    **{f"{LAYER}.self_attn.{name}_proj.weight": ("BF16", [32, 64]) for name in "kv"},
    f"{LAYER}.self_attn.o_proj.weight": ("BF16", [64, 64]),
    **{f"{LAYER}.self_attn.{name}_norm.weight": ("BF16", [16]) for name in "qk"},
    f"{LAYER}.mlp.gate.weight": ("BF16", [8, 64]),
    f"{LAYER}.mlp.shared_expert_gate.weight": ("BF16", [1, 64]),
    **{f"{LAYER}.mlp.shared_expert.{name}_proj.weight": ("BF16", [16, 64]) for name in ("gate", "up")},
    f"{LAYER}.mlp.shared_expert.down_proj.weight": ("BF16", [64, 16]),
    f"{LAYER}.mlp.experts.gate_up_proj": ("BF16", [8, 32, 64]),
    f"{LAYER}.mlp.experts.down_proj": ("BF16", [8, 64, 16]),
}
# 1.6 MB of experts, so that there is something to interrupt.
WIDE_CONFIG = {**CONFIG, "text_config": {**CONFIG["text_config"], "num_experts": 256}}
WIDE: Shapes = {name: (dtype, [256 if n == 8 else n for n in shape]) for name, (dtype, shape) in DRAFT.items()}
BODY: Shapes = {
    "model.embed_tokens.weight": ("BF16", [500, 64]),
    "model.layers.0.input_layernorm.weight": ("BF16", [64]),
    "lm_head.weight": ("BF16", [500, 64]),
}
INDEX = "model.safetensors.index.json"


def write(path: Path, tensors: Shapes) -> int:
    """A file of random bytes, the same for the same names; returns how many bytes of tensors."""
    header: dict[str, Any] = {}
    data = b""
    for name, (dtype, shape) in tensors.items():
        begin = len(data)
        data += random.Random(name).randbytes(math.prod(shape) * SIZES[dtype])
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [begin, len(data)]}
    raw = json.dumps(header).encode()
    path.write_bytes(len(raw).to_bytes(8, "little") + raw + data)
    return len(data)


def checkpoint(folder: Path, files: Iterable[Shapes], config: Any = CONFIG, index: bool = False) -> Path:
    """A checkpoint's folder: its tensors in one file each, a tokenizer, a hidden note."""
    folder.mkdir(parents=True)
    named = {f"model-{number}.safetensors": held for number, held in enumerate(files, 1)}
    total = sum(write(folder / name, held) for name, held in named.items())
    if index:
        weight_map = {tensor: name for name, held in named.items() for tensor in held}
        document = {"metadata": {"total_size": total, "by": "x"}, "weight_map": weight_map}
        (folder / INDEX).write_text(json.dumps(document))
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text("{}")
    (folder / ".cache").mkdir()
    (folder / ".cache/note").write_text("of the download")
    (folder / "chat").mkdir()
    (folder / "chat/template.jinja").write_text("{{ it }}")
    return folder


def donor(folder: Path, tensors: Shapes = DRAFT, index: bool = True) -> Path:
    """A checkpoint whose draft is spread over two of three files, among others' tensors."""
    names = list(tensors)
    first = {"model.a": ("U8", [300_000]), **{name: tensors[name] for name in names[::2]}, "model.b": ("U8", [7])}
    second = {**{name: tensors[name] for name in names[1::2]}, "model.c": ("U8", [300_000])}
    return checkpoint(folder, [BODY, first, second], index=index)


def state(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """All that must stay as it is: each file's inode, time and bytes."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {str(p.relative_to(folder)): (p.stat().st_ino, p.stat().st_mtime_ns, p.read_bytes()) for p in files}


def tensors_of(path: Path) -> dict[str, bytes]:
    """Each tensor's bytes."""
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    entries = json.loads(raw[8 : 8 + length])
    data = raw[8 + length :]
    return {name: data[slice(*one["data_offsets"])] for name, one in entries.items() if name != "__metadata__"}


def expected(tensors: Shapes = DRAFT) -> dict[str, bytes]:
    """Each tensor's bytes, as `write` makes them."""
    return {
        name: random.Random(name).randbytes(math.prod(shape) * SIZES[dtype]) for name, (dtype, shape) in tensors.items()
    }
