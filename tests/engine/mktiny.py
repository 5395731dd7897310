"""Makes tiny Qwen3.5-MoE checkpoints of random weights: FOLDER/tiny without visual tensors, FOLDER/tiny-visual with.

Run by the engine's own Python (torch, transformers, tokenizers): python mktiny.py FOLDER [LAYERS]

Every size is small but those that shape the KV cache (heads, head_dim, the linear layers' state), which are those of
the 35B models: a block has as many tokens as theirs on the same engine.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>"]
SPECIAL += ["<|image_pad|>", "<|video_pad|>"]
CHAT = """\
{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
HIDDEN = 64
TEXT: dict[str, Any] = {
    "vocab_size": 320,
    "hidden_size": HIDDEN,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 256,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_conv_kernel_dim": 4,
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
    "shared_expert_intermediate_size": 32,
    "max_position_embeddings": 262144,
    "eos_token_id": SPECIAL.index("<|im_end|>"),
    "pad_token_id": 0,
    "tie_word_embeddings": False,
    "mtp_num_hidden_layers": 1,
    "mamba_ssm_dtype": "float32",
}
VISION: dict[str, Any] = {
    "depth": 2,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_heads": 2,
    "out_hidden_size": HIDDEN,
    "patch_size": 16,
    "spatial_merge_size": 2,
    "temporal_patch_size": 2,
    "num_position_embeddings": 64,
    "in_channels": 3,
}
PROCESSOR: dict[str, Any] = {
    "processor_class": "Qwen3VLProcessor",
    "patch_size": 16,
    "temporal_patch_size": 2,
    "merge_size": 2,
    "image_mean": [0.5] * 3,
    "image_std": [0.5] * 3,
    "size": {"shortest_edge": 256, "longest_edge": 65536},
}


def tokenizer(folder: Path) -> None:
    """A byte-level tokenizer that knows no words."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=256 + len(SPECIAL), special_tokens=SPECIAL, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    made.train_from_iterator(["hello world"], trainer)
    PreTrainedTokenizerFast(
        tokenizer_object=made, eos_token="<|im_end|>", pad_token="<|endoftext|>", chat_template=CHAT
    ).save_pretrained(folder)


def model(folder: Path, layers: int) -> None:
    """config.json, the processors' files and model.safetensors with everything."""
    import torch
    from transformers import Qwen3_5MoeConfig, Qwen3_5MoeForConditionalGeneration

    marks = ("image_pad", "video_pad", "vision_start", "vision_end")
    names = ("image_token_id", "video_token_id", "vision_start_token_id", "vision_end_token_id")
    ids = {name: SPECIAL.index(f"<|{mark}|>") for name, mark in zip(names, marks, strict=True)}
    text = {**TEXT, "num_hidden_layers": layers}
    config = Qwen3_5MoeConfig(text_config=text, vision_config=VISION, tie_word_embeddings=False, **ids)
    torch.manual_seed(0)
    Qwen3_5MoeForConditionalGeneration(config).to(torch.bfloat16).save_pretrained(folder)
    image = {"image_processor_type": "Qwen2VLImageProcessorFast", **PROCESSOR}
    video = {"video_processor_type": "Qwen3VLVideoProcessor", **PROCESSOR}
    (folder / "preprocessor_config.json").write_text(json.dumps(image))
    (folder / "video_preprocessor_config.json").write_text(json.dumps(video))


def without_visual(whole: Path, folder: Path) -> None:
    """The same checkpoint without the vision tower's tensors."""
    from safetensors import safe_open
    from safetensors.torch import save_file

    shutil.copytree(whole, folder)
    with safe_open(whole / "model.safetensors", "pt") as file:
        kept = {name: file.get_tensor(name) for name in file.keys() if "visual" not in name}  # noqa: SIM118
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})


def main(folder: str, layers: str = "4") -> None:
    """Both checkpoints, each whole once it has its name."""
    out = Path(folder)
    whole, text = out / ".tiny-visual", out / ".tiny"
    for path in (whole, text):
        shutil.rmtree(path, ignore_errors=True)
    whole.mkdir(parents=True)
    tokenizer(whole)
    model(whole, int(layers))
    without_visual(whole, text)
    whole.rename(out / "tiny-visual")
    text.rename(out / "tiny")


if __name__ == "__main__":
    main(*sys.argv[1:])
