"""Which tensors a draft must have, for each make of model, and what index and config say with it."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest

from sparkops.lab.standin.checkpoints import configs, makeup
from sparkops.lab.standin.checkpoints.headers import index, shards, size
from sparkops.node import draft
from sparkops.node.api import Failure

REAL = {name: (dtype, shape) for name, dtype, shape in makeup.draft_tensors()}
LAYER = "mtp.layers.0"


def changed(config: dict[str, Any], **sizes: Any) -> dict[str, Any]:
    return {**config, "text_config": {**config["text_config"], **sizes}}


def test_the_published_draft() -> None:
    assert len(REAL) == 19
    assert sum(map(size, makeup.draft_tensors())) == 1_689_281_536
    for quantization in (None, configs.nvfp4_quantization(), configs.fp8_quantization()):
        assert draft.misfits(configs.config(quantization), REAL) == []


def test_what_the_published_indexes_become() -> None:
    for tensors, count in ((makeup.bf16_tensors(), 693), (makeup.fp8_tensors(), 62_546)):
        before: dict[str, Any] = index(shards(list(tensors), 10))
        kept = deepcopy(before)
        after = draft.grafted_index(before, REAL, 1_689_281_536)
        assert len(after["weight_map"]) == count + 19
        assert after["metadata"]["total_size"] == before["metadata"]["total_size"] + 1_689_281_536
        assert {after["weight_map"][name] for name in REAL} == {"mtp.safetensors"}
        assert before == kept


@pytest.mark.parametrize("quantization", [configs.nvfp4_quantization, configs.fp8_quantization])
def test_what_the_published_configs_become(quantization: Any) -> None:
    before = configs.config(quantization())
    kept = deepcopy(before)
    after = draft.grafted_config(before, 1)
    assert after == configs.config(quantization()) | {"quantization_config": after["quantization_config"]}
    assert after["quantization_config"]["ignore"] == [*kept["quantization_config"]["ignore"], r"re:^mtp\..*"]
    assert '"re:^mtp\\\\..*"' in json.dumps(after)
    assert draft.grafted_config(after, 1) == after
    assert before == kept
    assert draft.grafted_config(configs.config(), 1) == configs.config()


def test_where_configs_have_what() -> None:
    quantized = {"quantization_config": {"quant_method": "compressed-tensors"}}
    ignored = {"quantization_config": {"quant_method": "compressed-tensors", "ignore": [r"re:^mtp\..*"]}}
    assert draft.grafted_config(quantized, 2) == {**ignored, "mtp_num_hidden_layers": 2}
    assert draft.grafted_config({"text_config": quantized}, 2) == {
        "text_config": {**ignored, "mtp_num_hidden_layers": 2}
    }
    assert draft.grafted_index({"weight_map": {}}, ["mtp.x"], 5) == {"weight_map": {"mtp.x": "mtp.safetensors"}}
    for odd in ({"quant_method": "modelopt"}, {"quant_method": "fp8"}, {"ignore": "lm_head"}):
        with pytest.raises(Failure, match="only how compressed-tensors leaves a draft out is known"):
            draft.grafted_config({"quantization_config": odd}, 1)


def test_experts_one_by_one() -> None:
    apart = {name: one for name, one in REAL.items() if ".experts." not in name}
    for expert in range(256):
        apart[f"{LAYER}.mlp.experts.{expert}.gate_proj.weight"] = ("BF16", (512, 2048))
        apart[f"{LAYER}.mlp.experts.{expert}.up_proj.weight"] = ("BF16", (512, 2048))
        apart[f"{LAYER}.mlp.experts.{expert}.down_proj.weight"] = ("BF16", (2048, 512))
    assert draft.misfits(configs.config(), apart) == []
    del apart[f"{LAYER}.mlp.experts.77.up_proj.weight"]
    assert draft.misfits(configs.config(), apart) == [f"{LAYER}.mlp.experts.77.up_proj.weight is missing"]


def test_a_dense_model() -> None:
    config = changed(configs.config(), num_experts=None, intermediate_size=6144)
    dense = {name: one for name, one in REAL.items() if ".mlp." not in name}
    for name, shape in (("gate", (6144, 2048)), ("up", (6144, 2048)), ("down", (2048, 6144))):
        dense[f"{LAYER}.mlp.{name}_proj.weight"] = ("BF16", shape)
    assert draft.misfits(config, dense) == []
    assert f"{LAYER}.mlp.gate.weight is no tensor of such a draft" in draft.misfits(config, REAL)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"hidden_size": 4096}, "mtp.fc.weight is [2048, 4096], and config.json asks for [4096, 8192]"),
        ({"num_experts": 128}, f"{LAYER}.mlp.gate.weight is [256, 2048], and config.json asks for [128, 2048]"),
        ({"moe_intermediate_size": 768}, f"{LAYER}.mlp.experts.down_proj is [256, 2048, 512], and config.json asks"),
        ({"shared_expert_intermediate_size": 0}, f"{LAYER}.mlp.shared_expert_gate.weight is no tensor of such"),
        ({"num_key_value_heads": 4}, f"{LAYER}.self_attn.k_proj.weight is [512, 2048], and config.json asks"),
        ({"attn_output_gate": False}, f"{LAYER}.self_attn.q_proj.weight is [8192, 2048], and config.json asks"),
        ({"head_dim": 128}, f"{LAYER}.self_attn.q_norm.weight is [256], and config.json asks for [128]"),
        ({"mtp_num_hidden_layers": 2}, "config.json declares 2 MTP layers, and the draft has 1"),
        ({"dtype": "float16"}, "mtp.fc.weight is BF16, and a draft is grafted as it was trained: F16"),
    ],
)
def test_each_size_counts(sizes: dict[str, Any], message: str) -> None:
    assert any(line.startswith(message) for line in draft.misfits(changed(configs.config(), **sizes), REAL))


@pytest.mark.parametrize("bad", [None, 0, -1, "2048", True, 2.0, 1 << 40])
def test_a_config_without_sizes(bad: Any) -> None:
    with pytest.raises(Failure, match="has no hidden_size"):
        draft.misfits(changed(configs.config(), hidden_size=bad), REAL)


def test_a_config_that_asks_for_too_many() -> None:
    with pytest.raises(Failure, match="has no num_experts"):
        draft.misfits(changed(configs.config(), num_experts=1 << 23), {"mtp.x": ("BF16", (1,))})
