"""What tensors' names mean, and what follows when files, index and config disagree."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from sparkops.checkpoint.advice import advice, lacking
from sparkops.checkpoint.inspect import Inspection, inspect
from sparkops.checkpoint.names import category
from sparkops.checkpoint.sources import headers
from sparkops.errors import InputError

from .conftest import Make, Shapes

BF16 = "Qwen-AgentWorld-35B-A3B"
NVFP4 = "Qwen-AgentWorld-35B-A3B-NVFP4"
MTP = "Qwen-AgentWorld-35B-A3B-NVFP4-MTP"
CONFIG = {"model_type": "mixtral", "num_hidden_layers": 1, "num_local_experts": 8, "num_experts_per_tok": 2}
MIXTRAL: Shapes = {
    "model.embed_tokens.weight": ("BF16", [100, 16]),
    "model.layers.0.self_attn.q_proj.weight": ("BF16", [16, 16]),
    "model.layers.0.block_sparse_moe.gate.weight": ("BF16", [8, 16]),
    **{f"model.layers.0.block_sparse_moe.experts.{n}.w1.weight": ("BF16", [32, 16]) for n in range(8)},
    "model.layers.0.input_layernorm.weight": ("F32", [16]),
    "lm_head.weight": ("BF16", [100, 16]),
}


def looked(path: Path) -> tuple[Inspection, str]:
    found = inspect(headers(str(path)))
    return found, "\n".join(advice(found))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("model.language_model.layers.3.mlp.experts.*.up_proj.weight_packed", "routed_experts"),
        ("model.language_model.layers.3.mlp.experts.gate_up_proj", "routed_experts"),
        ("model.layers.0.block_sparse_moe.experts.7.w2.weight", "routed_experts"),
        ("model.layers.3.mlp.shared_expert.gate_proj.weight", "shared_experts"),
        ("model.layers.3.mlp.shared_experts.up_proj.weight", "shared_experts"),
        ("model.layers.3.mlp.shared_expert_gate.weight", "router"),
        ("model.layers.3.mlp.gate.e_score_correction_bias", "router"),
        ("model.layers.3.mlp.router.weight", "router"),
        ("model.layers.3.mlp.gate_proj.weight", "mlp"),
        ("model.layers.3.self_attn.q_norm.weight", "attention"),
        ("model.layers.3.linear_attn.norm.weight", "linear_attention"),
        ("model.layers.3.post_attention_layernorm.weight", "norm"),
        ("model.norm.weight", "norm"),
        ("lm_head.weight_scale", "lm_head"),
        ("model.embed_tokens.weight", "embedding"),
        ("transformer.wte.weight", "embedding"),
        ("model.visual.blocks.3.attn.qkv.weight", "vision"),
        ("vision_tower.vision_model.embeddings.position_embedding.weight", "vision"),
        ("multi_modal_projector.linear_1.weight", "vision"),
        ("audio_tower.layers.0.self_attn.k_proj.weight", "audio"),
        ("mtp.layers.0.mlp.experts.gate_up_proj", "mtp"),
        ("model.layers.61.mlp.experts.3.up_proj.weight", "mtp"),
        ("model.layers.60.mlp.experts.3.up_proj.weight", "routed_experts"),
        ("rope.inv_freq", "other"),
    ],
)
def test_category(name: str, expected: str) -> None:
    assert category(name, layers=61) == expected


def test_a_small_one(make: Make) -> None:
    found, told = looked(make({"model.safetensors": MIXTRAL}, CONFIG))
    assert (found.tensors, found.experts, found.experts_per_token) == (13, 8, 2)
    assert found.parts["routed_experts"].bytes == 8 * 1024
    assert found.parts["routed_experts"].decode_bytes == 2 * 1024
    assert found.decode_bytes == 2 * 1024 + 512 + 256 + 64 + 3200
    assert found.dtypes == {"BF16": 8192 + 512 + 256 + 6400, "F32": 64}
    assert found.file_bytes > found.resident_bytes == sum(found.dtypes.values())
    assert told == "do not pass --language-model-only: it is a text model, by its config and by its tensors"


def test_a_tied_embedding_is_read_whole(make: Make) -> None:
    tied = {name: shape for name, shape in MIXTRAL.items() if name != "lm_head.weight"}
    assert looked(make({"model.safetensors": tied}, CONFIG))[0].parts["embedding"].decode_bytes == 3200


def test_one_file_of_several(make: Make) -> None:
    folder = make({"a.safetensors": MIXTRAL, "b.safetensors": {"x": ("U8", [3])}}, CONFIG, index=True)
    assert looked(folder / "b.safetensors")[0].tensors == 1
    assert looked(folder)[0].tensors == 14


def test_flags_and_patch(models: Path) -> None:
    for name, flag, patch in (
        (BF16, "\npass --language-model-only", "no patch needed"),
        (NVFP4, "\ndo not pass --language-model-only: the 333 visual tensors", "no patch:"),
    ):
        told = "\n" + looked(models / name)[1]
        assert flag in told
        assert patch in told
        assert "no draft: config.json declares 1 MTP layer and no mtp tensor is there" in told


def test_a_draft(models: Path, make: Make) -> None:
    found, told = looked(models / MTP)
    assert "a draft is there (19 mtp tensors)" in told
    assert "quantization_config" not in told
    assert not lacking(found, 3)
    assert lacking(looked(models / BF16)[0], 3) == [
        "no mtp tensor is there to draft with: sparkops checkpoint graft-mtp gives it a draft"
    ]
    assert not lacking(looked(models / BF16)[0], 0)
    draft: Shapes = {"mtp.layers.0.self_attn.q_proj.weight": ("BF16", [2, 2])}
    _, told = looked(make({"model.safetensors": {**MIXTRAL, **draft}}, CONFIG))
    assert "no draft: 1 mtp tensors are there, but config.json declares no MTP layer" in told


@pytest.mark.parametrize(
    ("ignore", "right"),
    [
        ([r"re:^mtp\..*"], True),
        (["mtp"], False),
        (["re:(", "lm_head"], False),
        (["mtp.layers.0.self_attn.q_proj"], True),
    ],
)
def test_a_draft_that_the_quantization_would_take_for_its_own(make: Make, ignore: list[str], right: bool) -> None:
    draft: Shapes = {"mtp.layers.0.self_attn.q_proj.weight": ("BF16", [2, 2])}
    config = {**CONFIG, "mtp_num_hidden_layers": 1, "quantization_config": {"ignore": ignore}}
    _, told = looked(make({"model.safetensors": {**MIXTRAL, **draft}}, config))
    assert ('add "re:^mtp' not in told) is right


def test_files_and_index(make: Make) -> None:
    draft: Shapes = {"mtp.fc.weight": ("BF16", [2, 2])}
    folder = make({"a.safetensors": MIXTRAL}, CONFIG, index=True)
    make({"mtp.safetensors": draft})
    found, told = looked(folder)
    assert "mtp.safetensors is ignored (1 tensors): the index does not name it" in told
    assert (found.tensors, found.count("mtp")) == (13, 0)
    names = dict.fromkeys(MIXTRAL, "a.safetensors")

    def says(index: dict[str, str], total: int = found.resident_bytes) -> str:
        document = {"metadata": {"total_size": total}, "weight_map": index}
        (folder / "model.safetensors.index.json").write_text(json.dumps(document))
        return looked(folder)[1]

    assert "gone.safetensors is missing: the index names it" in says({**names, "x": "gone.safetensors"})
    assert "the index names and no file holds: 1 (x)" in says({**names, "x": "a.safetensors"})
    assert "the index leaves out (the engine reads them all the same): 1 (lm_head.weight)" in says(
        {name: file for name, file in names.items() if name != "lm_head.weight"}
    )
    assert "lie in another file than the index says: 1 (lm_head.weight)" in says(
        {**names, "lm_head.weight": "mtp.safetensors"}
    )
    assert f"the index says 7 bytes of tensors, and there are {found.resident_bytes:,}" in says(names, 7)
    assert "index" not in says({**names, "mtp.fc.weight": "mtp.safetensors"}, found.resident_bytes + 8)
    make({"b.safetensors": {"lm_head.weight": ("U8", [1])}})
    (folder / "model.safetensors.index.json").unlink()
    assert "tensors that two files hold: 1 (lm_head.weight)" in looked(folder)[1]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"num_hidden_layers": 2}, "config.json says 2 layers, and tensors of 1 are there"),
        ({"num_local_experts": 16}, "config.json says 16 experts a layer, and tensors of 8 are there"),
        ({"num_experts_per_tok": None}, "does not say how many experts a token goes through"),
    ],
)
def test_config_and_tensors(make: Make, more: dict[str, Any], message: str) -> None:
    assert message in looked(make({"model.safetensors": MIXTRAL}, {**CONFIG, **more}))[1]


def test_no_config(make: Make) -> None:
    found, told = looked(make({"model.safetensors": MIXTRAL}))
    assert told.startswith("there is no config.json")
    assert found.parts["routed_experts"].decode_bytes == found.parts["routed_experts"].bytes


def test_damaged_files_are_named(make: Make) -> None:
    folder = make({f"model-{n}.safetensors": MIXTRAL for n in range(3)}, CONFIG)
    path = folder / "model-1.safetensors"
    os.truncate(path, path.stat().st_size - 1)
    os.truncate(folder / "model-2.safetensors", 20)
    with pytest.raises(
        InputError, match=r"(?s)model-1.safetensors: truncated: [0-9,]+ of [0-9,]+ bytes.*model-2.safetensors: trunc"
    ):
        looked(folder)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("config.json", "{", "config.json: no JSON"),
        ("config.json", "[]", "config.json: no JSON object"),
        ("config.json", "[" * 100_000, "config.json: no JSON"),
        ("config.json", '{"num_hidden_layers": -1}', "num_hidden_layers is '-1'"),
        ("model.safetensors.index.json", "{}", "no weight_map"),
        ("model.safetensors.index.json", '{"weight_map": {"a": 1}}', "no weight_map"),
        ("model.safetensors.index.json", '{"weight_map": {}, "metadata": {"total_size": "x"}}', "total_size is 'x'"),
        (
            "model.safetensors.index.json",
            '{"weight_map": {}, "metadata": {"total_size": 1e999}}',
            "total_size is 'inf'",
        ),
    ],
)
def test_bad_json(make: Make, file: str, content: str, message: str) -> None:
    folder = make({"model.safetensors": MIXTRAL}, CONFIG)
    (folder / file).write_text(content)
    with pytest.raises(InputError, match=message):
        looked(folder)


def test_what_is_no_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such folder or file"):
        headers(str(tmp_path / "gone"))
    with pytest.raises(InputError, match=r"no \*.safetensors file"):
        headers(str(tmp_path))
    (tmp_path / "x.bin").write_bytes(b"PK\x03\x04" * 10)
    with pytest.raises(InputError, match="not a safetensors file"):
        headers(str(tmp_path / "x.bin"))
