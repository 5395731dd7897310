"""Weights as deploy gets them, as push brings them and prune removes them, on three nodes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from sparkops.lab.nspawn.host import entering
from sparkops.lab.standin.checkpoints import configs, headers, makeup, seeding
from tests.e2e.hubs import MIB, MODELS, URL, Hub, here, hub_in, leftovers, sums, traffic, weights
from tests.e2e.nodes import Nodes, lab

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]

NAMES = [f"spark-{number}" for number in range(1, 4)]
RECIPE = {"name": "small", "extends": "fp8", "model": "org/small", "model_source": "hf:org/small"}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """Three nodes, and a recipe whose checkpoint is on none of them."""
    with lab(tmp_path_factory.mktemp("deploy") / "lab", len(NAMES)) as nodes:
        (nodes.dir / "recipes").mkdir()
        (nodes.dir / "recipes/small.yml").write_text(yaml.safe_dump(RECIPE))
        nodes.sparkops("provision", "--all-nodes", "--recipe", "fp8")
        yield nodes


@pytest.fixture(scope="module")
def hub(fleet: Nodes, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    """It has the recipe's model: every tensor of the real one, each with one number."""
    folder = tmp_path_factory.mktemp("hub")
    model = folder / "models/org/small"
    model.mkdir(parents=True)
    tensors: list[makeup.Tensor] = [(name, dtype, (1,)) for name, dtype, _ in makeup.fp8_tensors()]
    headers.write_sparse(model / "model.safetensors", headers.header(tensors))
    seeding.write_json(model / "config.json", configs.config(configs.fp8_quantization()))
    with hub_in(fleet, folder) as hub:
        yield hub


def test_deploy_alone_gets_everything_in_place(fleet: Nodes, hub: Hub) -> None:
    wanted = sums(hub.folder / "models/org/small")
    words = ("deploy", "small", "--all-nodes", "-e", f"hub_url={URL}")
    check = fleet.sparkops(*words, "--check")
    assert here(fleet, "spark-1", "small") == {}
    foreseen = {task["task"] for task in check.tasks() if task["state"] in ("changed", "unknown")}
    done = fleet.sparkops(*words)
    assert {task["task"] for task in done.tasks() if task["state"] == "changed"} <= foreseen
    assert sorted(name for name, _, _ in hub.served()) == sorted(wanted)
    for node in NAMES:
        assert here(fleet, node, "small") == wanted
        assert leftovers(fleet, node) == ""
        assert fleet.token(node, "Qwen/Qwen3.6-35B-A3B-FP8")
    assert set(fleet.sparkops(*words).count("changed").values()) == {0}
    assert hub.served() == []


def test_what_is_served_is_not_pruned(fleet: Nodes, hub: Hub) -> None:
    del hub
    kept = fleet.sparkops("weights", "prune", "--all-nodes")
    assert set(kept.count("changed").values()) == {0}
    refused = fleet.sparkops("weights", "prune", "spark-1", "--model", "small", rc=1).failure("spark-1")
    assert "release vllm 1 serves it" in refused["msg"]


def test_push_list_and_prune(fleet: Nodes, hub: Hub, tmp_path: Path) -> None:
    folder = tmp_path / "brought"
    wanted = hub.model("brought", {"a.safetensors": 12 * MIB, "b.safetensors": 3 * MIB})
    (hub.folder / "models/org/brought").rename(folder)
    fleet.sparkops("weights", "push", str(folder), "--all-nodes")
    assert all(here(fleet, node, "brought") == wanted for node in NAMES)
    assert set(fleet.sparkops("weights", "push", str(folder), "--all-nodes").count("changed").values()) == {0}
    listed = json.loads(fleet.plain("--json", "weights", "list").out)
    contents = {one["content"] for node in NAMES for one in listed[node]["checkpoints"] if one["name"] == "brought"}
    assert len(contents) == 1
    assert "" not in contents
    assert fleet.plain("weights", "list").out.count("brought") == 3
    # A cable's worth of another node's copy, and one whose content nobody has recorded.
    fleet.on("spark-2", "rm", f"/{MODELS}/brought/b.safetensors")
    weights(fleet, "sync", "brought", "--all-nodes")
    assert here(fleet, "spark-2", "brought") == wanted
    fleet.sparkops("weights", "prune", "--all-nodes", "--model", "brought")
    assert all(here(fleet, node, "brought") == {} for node in NAMES)
    assert fleet.on("spark-1", "ls", f"/{MODELS}").split() == [
        "Qwen-AgentWorld-35B-A3B", "Qwen-AgentWorld-35B-A3B-NVFP4", "Qwen-AgentWorld-35B-A3B-NVFP4-MTP",
        "Qwen3.6-35B-A3B-FP8", "small",
    ]  # fmt: skip


def test_another_commit_brings_the_files_that_differ(fleet: Nodes, hub: Hub) -> None:
    first, second = (hub.folder / "commit").read_text(), "beef" * 10
    old = hub.model("pinned", {"a.safetensors": 12 * MIB, "b.safetensors": 12 * MIB, "stale.safetensors": MIB})
    weights(fleet, "pull", f"org/pinned@{first}", "--all-nodes")
    weights(fleet, "sync", f"org/pinned@{first}", "--all-nodes")
    hub.served()
    folder = hub.folder / "models/org/pinned"
    (folder / "stale.safetensors").unlink()
    (folder / "b.safetensors").write_bytes(b"new" * MIB)
    (folder / "config.json").write_text('{"new": 1}')
    (hub.folder / "commit").write_text(second)
    wanted = sums(folder)
    try:
        # Without a revision, what is there will do.
        assert set(weights(fleet, "pull", "org/pinned", "--all-nodes").count("changed").values()) == {0}
        check = weights(fleet, "pull", f"org/pinned@{second}", "--all-nodes", "--check")
        assert sum(count > 0 for count in check.count("changed").values()) == 1
        assert all(here(fleet, node, "pinned") == old for node in NAMES)
        weights(fleet, "pull", f"org/pinned@{second}", "--all-nodes")
        assert sorted(name for name, _, _ in hub.served()) == ["b.safetensors", "config.json"]
        before = traffic(fleet, NAMES)
        weights(fleet, "sync", f"org/pinned@{second}", "--all-nodes")
        after = traffic(fleet, NAMES)
        assert all(here(fleet, node, "pinned") == wanted for node in NAMES)
        assert all(after[node][1] - before[node][1] < 3 * MIB * 1.1 + 4 * MIB for node in NAMES)
        again = weights(fleet, "sync", f"org/pinned@{second}", "--all-nodes")
        assert set(again.count("changed").values()) == {0}
        verified = weights(fleet, "verify", "org/pinned", "--all-nodes")
        assert len({task["result"]["content"] for task in verified.tasks()}) == 1
        assert hub.served() == []
    finally:
        (hub.folder / "commit").write_text(first)


@pytest.fixture
def fabric(fleet: Nodes) -> Iterator[dict[str, str]]:
    """A second network between two of the nodes: their addresses in it."""
    ends = dict(zip(NAMES[:2], ("10.99.7.1", "10.99.7.2"), strict=True))
    near, far = (fleet.dir / "nodes" / name / "net" for name in ends)
    link(near, "link", "add", "fabric", "type", "veth", "peer", "name", "fabric", "netns", str(far))
    for name, address in ends.items():
        link(fleet.dir / "nodes" / name / "net", "address", "add", f"{address}/24", "dev", "fabric")
        link(fleet.dir / "nodes" / name / "net", "link", "set", "fabric", "up")
    yield ends
    link(near, "link", "delete", "fabric")


def link(netns: Path, *words: str) -> None:
    """`ip` in a node's network."""
    subprocess.run(entering(netns, ["ip", *words]), check=True)


def test_copies_go_over_the_fabric(fleet: Nodes, hub: Hub, fabric: dict[str, str], tmp_path: Path) -> None:
    wanted = hub.model("wide", {"a.safetensors": 32 * MIB})
    weights(fleet, "pull", "org/wide", "spark-1")
    document = yaml.safe_load(fleet.inventory.read_text())
    for name, address in fabric.items():
        hosts(document)[name]["fabric_address"] = address
    inventory = tmp_path / "hosts.yml"
    inventory.write_text(yaml.safe_dump(document))
    before = traffic(fleet, fabric, "fabric")
    common = traffic(fleet, NAMES)
    fleet.sparkops("weights", "sync", "org/wide", "--all-nodes", inventory=inventory)
    now = traffic(fleet, NAMES)
    assert all(here(fleet, node, "wide") == wanted for node in NAMES)
    after = traffic(fleet, fabric, "fabric")
    assert 32 * MIB < after["spark-1"][0] - before["spark-1"][0] < 34 * MIB
    assert 32 * MIB < after["spark-2"][1] - before["spark-2"][1] < 34 * MIB
    assert now["spark-2"][1] - common["spark-2"][1] < 4 * MIB
    # The third is in the common network alone.
    assert 32 * MIB < now["spark-3"][1] - common["spark-3"][1] < 38 * MIB
    assert all(leftovers(fleet, node) == "" for node in NAMES)


def hosts(document: Any) -> dict[str, Any]:
    """The hosts of an inventory, wherever they stand."""
    for group in document.values():
        if isinstance(group, dict) and "hosts" in group:
            found: dict[str, Any] = group["hosts"]
            return found
        if isinstance(group, dict) and (below := hosts(group)):
            return below
    return {}


def test_what_was_there_is_adopted_and_copied(fleet: Nodes, hub: Hub) -> None:
    del hub
    script = (
        f"mkdir /{MODELS}/mine; cd /{MODELS}/mine; echo '{{}}' > config.json; head -c 9m /dev/urandom > m.safetensors"
    )
    fleet.on("spark-2", "runuser", "-u", "spark", "--", "sh", "-c", script)
    wanted = here(fleet, "spark-2", "mine")
    fleet.sparkops("weights", "sync", "mine", "--all-nodes")
    assert all(here(fleet, node, "mine") == wanted for node in NAMES)
    fleet.sparkops("weights", "prune", "--all-nodes")
    assert [bool(here(fleet, node, "mine")) for node in NAMES] == [False, True, False]
