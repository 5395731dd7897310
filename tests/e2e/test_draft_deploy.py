"""A recipe whose checkpoint is made by a graft: `deploy` alone fetches, grafts once, links, copies, and serves."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from sparkops.lab.standin.checkpoints import configs, headers, makeup, seeding
from tests.e2e.hubs import MIB, MODELS, URL, Hub, here, hub_in, leftovers, sums, traffic
from tests.e2e.nodes import Done, Nodes, lab
from tests.node.grafting import DRAFT, donor, expected, tensors_of

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]

NAMES = [f"spark-{number}" for number in range(1, 4)]
SERVED = "Qwen-AgentWorld-35B-A3B-NVFP4"
# The real model's cache, with a draft as small as that of the tests of the graft.
SMALL = {"hidden_size": 64, "num_experts": 8, "moe_intermediate_size": 16, "shared_expert_intermediate_size": 16}
DONOR = {"target": "base", "donor": "hf:org/donor"}
RECIPES: dict[str, dict[str, Any]] = {
    "base": {"extends": "nvfp4", "model": "org/base", "model_source": "hf:org/base"},
    "drafted": {"extends": "nvfp4-mtp", "model": "org/drafted", "draft": DONOR},
    "private": {"extends": "nvfp4", "model": "org/private"},
    "of-private": {"extends": "nvfp4-mtp", "model": "org/of-private", "draft": {**DONOR, "target": "private"}},
}
BULK = 48 * MIB


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """Three nodes, with none of the recipes' checkpoints."""
    with lab(tmp_path_factory.mktemp("draft") / "lab", len(NAMES)) as nodes:
        (nodes.dir / "recipes").mkdir()
        for name, recipe in RECIPES.items():
            (nodes.dir / f"recipes/{name}.yml").write_text(yaml.safe_dump({"name": name, **recipe}))
        nodes.sparkops("provision", "--all-nodes", "--recipe", "nvfp4-mtp")
        yield nodes


@pytest.fixture(scope="module")
def hub(fleet: Nodes, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    """It has the target, with much beside its tensors, and the donor of the draft."""
    folder = tmp_path_factory.mktemp("hub")
    base = folder / "models/org/base"
    base.mkdir(parents=True)
    names = [*makeup.bf16_tensors(), *makeup.vision_tower()]
    headers.write_sparse(base / "model.safetensors", headers.header([(name, dtype, (1,)) for name, dtype, _ in names]))
    config = configs.config(configs.nvfp4_quantization())
    config["text_config"].update(SMALL)
    seeding.write_json(base / "config.json", config)
    (base / "bulk.data").write_bytes(os.urandom(BULK))
    donor(folder / "models/org/donor", shapes())
    with hub_in(fleet, folder) as hub:
        yield hub


def shapes() -> dict[str, tuple[str, list[int]]]:
    """The draft for a hidden size of 64 and the real model's attention: 16 heads of 256, 2 of keys and values."""
    attention = {"q_proj": [8192, 64], "k_proj": [512, 64], "v_proj": [512, 64], "o_proj": [64, 4096]}
    wide = {f"mtp.layers.0.self_attn.{name}.weight": ("BF16", shape) for name, shape in attention.items()}
    norms = {f"mtp.layers.0.self_attn.{name}_norm.weight": ("BF16", [256]) for name in "qk"}
    return {**DRAFT, **wide, **norms}


def deploy(nodes: Nodes, recipe: str, *words: str, rc: int = 0) -> Done:
    return nodes.sparkops("deploy", recipe, "--all-nodes", "-e", f"hub_url={URL}", "-e", "hub_stall=5", *words, rc=rc)


def right(nodes: Nodes, node: str, target: str, folder: str) -> None:
    """The graft is whole there, and shares the target's large file."""
    made, whole = (nodes.root(node) / MODELS / name for name in (folder, target))
    assert tensors_of(made / "mtp.safetensors") == expected(shapes())
    assert (made / "bulk.data").samefile(whole / "bulk.data")
    assert (made / "model.safetensors").samefile(whole / "model.safetensors")
    assert leftovers(nodes, node) == ""


def test_deploy_alone_grafts_once_and_serves_everywhere(fleet: Nodes, hub: Hub) -> None:
    check = deploy(fleet, "drafted", "--check")
    assert all(here(fleet, node, name) == {} for node in NAMES for name in ("base", "drafted"))
    foreseen = {task["task"] for task in check.tasks() if task["state"] in ("changed", "unknown")}
    hub.served()

    before = traffic(fleet, NAMES)
    done = deploy(fleet, "drafted")
    after = traffic(fleet, NAMES)
    assert {task["task"] for task in done.tasks() if task["state"] == "changed"} <= foreseen
    served = hub.served()
    base = sums(hub.folder / "models/org/base")
    assert sorted(name for name, _, _ in served if name in ("bulk.data", "model.safetensors")) == [
        "bulk.data", "model.safetensors",
    ]  # fmt: skip
    draft = sum(map(len, expected(shapes()).values()))
    of_donor = [(name, first, sent) for name, first, sent in served if name.startswith("model-")]
    assert len({(name, first) for name, first, _ in of_donor}) == len(of_donor)
    assert draft <= sum(sent for _, _, sent in of_donor) < draft + 3 * 100_000 + 1_000
    for node in NAMES:
        assert here(fleet, node, "base") == base
        right(fleet, node, "base", "drafted")
        assert fleet.token(node, SERVED)
        assert "num_speculative_tokens" in fleet.on(node, "cat", "/opt/sparkops/releases/vllm/current/run")
        # The large file came once, whichever of the two checkpoints it is in.
        assert after[node][1] - before[node][1] < BULK + draft + 12 * MIB
    assert len({str(sums(fleet.root(node) / MODELS / "drafted")) for node in NAMES}) == 1

    again = deploy(fleet, "drafted")
    assert set(again.count("changed").values()) == {0}
    assert hub.served() == []


def test_a_node_that_comes_later_takes_it_from_the_others(fleet: Nodes, hub: Hub) -> None:
    for gone in (("drafted",), ("drafted", "base")):
        for name in gone:
            fleet.on("spark-3", "rm", "-r", f"/{MODELS}/{name}")
        before = traffic(fleet, NAMES)["spark-3"][1]
        done = deploy(fleet, "drafted")
        assert {node: bool(count) for node, count in done.count("changed").items()} == {
            "spark-1": False, "spark-2": False, "spark-3": True,
        }  # fmt: skip
        got = traffic(fleet, NAMES)["spark-3"][1] - before
        assert got < (BULK if "base" in gone else 0) + 12 * MIB
        right(fleet, "spark-3", "base", "drafted")
    assert hub.served() == []


def test_a_target_that_is_not_published(fleet: Nodes, hub: Hub) -> None:
    failed = deploy(fleet, "of-private", rc=1)
    for node in NAMES:
        assert "private is what of-private is made of" in failed.failure(node)["msg"]
        assert "-e draft_target=hf:ORG/NAME" in failed.failure(node)["msg"]
        assert here(fleet, node, "of-private") == {}
    assert hub.served() == []
    assert "is no place" in fleet.plain("deploy", "of-private", "spark-1", "-e", "draft_target=org/base").err

    # Its source, or its folder on one of the nodes, is enough.
    fleet.on("spark-2", "cp", "-a", f"/{MODELS}/base", f"/{MODELS}/private")
    deploy(fleet, "of-private")
    assert not any(name == "bulk.data" for name, _, _ in hub.served())
    for node in NAMES:
        right(fleet, node, "private", "of-private")
        assert fleet.token(node, SERVED)

    # A checkpoint that is finished is taken as it is.
    done = deploy(fleet, "of-private", "-e", f"model_source=/{MODELS}/drafted")
    assert all(fleet.token(node, SERVED) for node in NAMES)
    assert done.count("failed") == dict.fromkeys(NAMES, 0)
    assert f"/{MODELS}/drafted" in fleet.on("spark-3", "cat", "/opt/sparkops/releases/vllm/current/run")


def test_a_graft_that_fails_leaves_nothing(fleet: Nodes, hub: Hub) -> None:
    for node in NAMES:
        fleet.on(node, "rm", "-r", f"/{MODELS}/drafted")
    hub.misbehave({"model-2.safetensors": ["403"] * 30, "model-3.safetensors": ["403"] * 30})
    failed = deploy(fleet, "drafted", rc=1)
    assert any("403" in failed.failure(node)["msg"] for node in NAMES)
    for node in NAMES:
        assert here(fleet, node, "drafted") == {}
        assert fleet.token(node, SERVED)
    hub.misbehave({})
    deploy(fleet, "drafted")
    for node in NAMES:
        right(fleet, node, "base", "drafted")
