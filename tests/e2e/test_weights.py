"""Weights on eight nodes: fetched once from a hub that misbehaves, copied as a tree, mended, killed at random."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sparkops.checkpoint.spread import rounds
from tests.e2e.hubs import MIB, MODELS, URL, Hub, here, hub_in, leftovers, traffic, weights
from tests.e2e.interrupting import KILL_WEIGHTS, Started, no_executor_stays
from tests.e2e.nodes import Nodes, eventually, lab

pytestmark = [pytest.mark.lab, pytest.mark.timeout(900)]

NAMES = [f"spark-{number}" for number in range(1, 9)]
JOBS = "home/spark/.local/share/sparkops/state/jobs"
TOKEN = "hf_" + "s3cret" * 5
# As spark, without sparkops: the daemon of a raw copy, which takes as much as a copy of sparkops' own does.
RAW = "use chroot = no\nlog file = /dev/null\n[raw]\npath = /home/spark/models/hf\nread only = yes\n"


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    with lab(tmp_path_factory.mktemp("weights") / "lab", len(NAMES)) as nodes:
        nodes.sparkops("provision", "--all-nodes", "--recipe", "fp8")
        yield nodes


@pytest.fixture(scope="module")
def hub(fleet: Nodes, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    with hub_in(fleet, tmp_path_factory.mktemp("hub")) as hub:
        yield hub


def test_one_download_and_a_tree(fleet: Nodes, hub: Hub) -> None:
    size = 1024 * MIB
    wanted = hub.model("large", {f"model-{number}.safetensors": size // 4 for number in range(4)})
    pulled = weights(fleet, "pull", "org/large", "--all-nodes")
    assert sum(count > 0 for count in pulled.count("changed").values()) == 1
    served = hub.served()
    assert sorted(name for name, _, _ in served) == sorted(wanted)
    assert sum(sent for _, _, sent in served) == size + len(json.dumps({"name": "large"}))
    assert here(fleet, "spark-1", "large") == wanted

    before = traffic(fleet, NAMES)
    weights(fleet, "sync", "org/large", "--all-nodes")
    after = traffic(fleet, NAMES)
    assert hub.served() == []
    tree = rounds(NAMES[:1], NAMES[1:])
    assert len(tree) == 3
    for node in NAMES:
        sent, got = (now - then for now, then in zip(after[node], before[node], strict=True))
        serves = sum(source == node for one in tree for source, _ in one)
        takes = node != NAMES[0]
        assert serves * size <= sent < serves * size * 1.02 + takes * size * 0.02 + 4 * MIB, (node, serves, sent)
        assert takes * size <= got < takes * size * 1.02 + serves * size * 0.02 + 4 * MIB, (node, takes, got)
        assert here(fleet, node, "large") == wanted
        assert leftovers(fleet, node) == ""
    weights(fleet, "verify", "org/large", "--all-nodes")
    again = weights(fleet, "sync", "org/large", "--all-nodes")
    assert set(again.count("changed").values()) == {0}

    # Both as the second copy after a raw one: what a copy leaves in memory makes the next one faster or slower.
    for _ in range(2):
        raw_copies(fleet, tree, "large")
        raw = raw_copies(fleet, tree, "large")
        empty(fleet, "large")
        begun = time.monotonic()
        weights(fleet, "sync", "org/large", "--all-nodes")
        took = time.monotonic() - begun
        print(f"sync {took:.1f} s, raw rsync of the same tree {raw:.1f} s: {took / raw:.2f}")
        if took < 1.3 * raw:
            break
    assert took < 1.3 * raw
    for node in NAMES:
        fleet.on(node, "rm", "-r", f"/{MODELS}/large", "/home/spark/.local/share/sparkops/state/weights")


def empty(nodes: Nodes, model: str) -> None:
    """Take a model from all nodes but the first, and let the disk come to rest."""
    for node in NAMES[1:]:
        nodes.on(node, "rm", "-rf", f"/{MODELS}/{model}", "/home/spark/.local/share/sparkops/state/weights")
    for node in NAMES:
        nodes.on(node, "sync")


def raw_copies(nodes: Nodes, tree: list[list[tuple[str, str]]], model: str) -> float:
    """The seconds that rsync takes for the tree, each round after the one before."""
    for node in NAMES:
        nodes.on(node, "sh", "-c", f"printf '{RAW}' > /tmp/raw.conf; rsync --daemon --config=/tmp/raw.conf --port=8730")
    addresses = {node: nodes.on(node, "hostname", "-I").split()[0] for node in NAMES}
    empty(nodes, model)

    def copy(pair: tuple[str, str]) -> None:
        source, taker = pair
        nodes.on(taker, "rsync", "-rt", f"rsync://{addresses[source]}:8730/raw/{model}", f"/{MODELS}/")

    begun = time.monotonic()
    with ThreadPoolExecutor(4) as pool:
        for pairs in tree:
            list(pool.map(copy, pairs))
    took = time.monotonic() - begun
    for node in NAMES:
        nodes.on(node, "sh", "-c", "pkill -x rsync; rm -r /tmp/raw.conf; true")
    return took


FAULTS = {
    "a.safetensors": ["429", "500", "cut"],
    "b.safetensors": ["stall", "short"],
    "c.safetensors": ["etag"],
}


def test_a_hub_that_misbehaves_is_survived(fleet: Nodes, hub: Hub) -> None:
    wanted = hub.model("faults", dict.fromkeys(FAULTS, 24 * MIB))
    hub.misbehave({name: list(faults) for name, faults in FAULTS.items()})
    weights(fleet, "pull", "org/faults", "spark-1")
    assert here(fleet, "spark-1", "faults") == wanted
    assert json.loads((hub.folder / "faults.json").read_text()) == {name: [] for name in FAULTS}
    assert leftovers(fleet, "spark-1") == ""
    hub.served()


@pytest.mark.parametrize(
    ("fault", "said"),
    [("etag", "m.safetensors of org/{} came twice with other bytes"), ("404", "404 Not Found"), ("403", "403")],
)
def test_what_cannot_be_survived_is_named(fleet: Nodes, hub: Hub, fault: str, said: str) -> None:
    model = f"never-{fault}"
    hub.model(model, {"m.safetensors": 4 * MIB})
    hub.misbehave({"m.safetensors": [fault] * 30})
    failed = weights(fleet, "pull", f"org/{model}", "spark-1", rc=1).failure("spark-1")
    assert said.format(model) in failed["msg"]
    assert here(fleet, "spark-1", model) == {}
    hub.misbehave({})
    weights(fleet, "pull", f"org/{model}", "spark-1")
    weights(fleet, "prune", "spark-1", "--model", f"org/{model}")
    assert leftovers(fleet, "spark-1") == ""
    hub.served()


def test_a_token_is_in_no_argv_and_no_log(fleet: Nodes, hub: Hub) -> None:
    hub.model("gated", {"m.safetensors": 16 * MIB})
    (hub.folder / "token").write_text(TOKEN)
    hub.misbehave({"m.safetensors": ["stall"]})
    try:
        refused = weights(fleet, "pull", "org/gated", "spark-1", rc=1).failure("spark-1")
        assert "restricted" in refused["msg"] or "401" in refused["msg"]
        watch = (
            "end=$(($(date +%s) + 8)); while [ $(date +%s) -lt $end ]; do cat /proc/[0-9]*/cmdline 2>/dev/null; done"
            f" | tr '\\0' ' ' | grep -c {TOKEN[:9]}[^[]; true"
        )
        with ThreadPoolExecutor(1) as pool:
            seen = pool.submit(fleet.on, "spark-1", "sh", "-c", watch)
            done = weights(fleet, "pull", "org/gated", "spark-1", "-e", f"hub_token={TOKEN}")
            assert seen.result().strip() == "0"
        assert TOKEN not in done.out + done.err
        assert fleet.on("spark-1", "sh", "-c", f"grep -rl {TOKEN} /home/spark /opt/sparkops /tmp /var/log; true") == ""
    finally:
        (hub.folder / "token").unlink()


def test_a_flipped_byte_is_found_and_mended_by_that_file(fleet: Nodes, hub: Hub) -> None:
    wanted = hub.model("flip", {"a.safetensors": 40 * MIB, "b.safetensors": 40 * MIB})
    weights(fleet, "pull", "org/flip", "spark-1,spark-2")
    weights(fleet, "sync", "org/flip", "spark-1,spark-2")
    hub.served()
    flip = "printf x | dd of=/home/spark/models/hf/flip/b.safetensors bs=1 seek=12345678 conv=notrunc"
    for node in ("spark-1", "spark-2"):
        # As a disk does it: nobody has written, so no time has changed.
        fleet.on(
            node,
            "sh",
            "-c",
            f"cd /tmp; touch -r /{MODELS}/flip/b.safetensors t; {flip}; touch -r t /{MODELS}/flip/b.safetensors",
        )
    kept = fleet.on("spark-2", "stat", "-c", "%i", f"/{MODELS}/flip/a.safetensors")
    failed = weights(fleet, "verify", "org/flip", "spark-1,spark-2", rc=1)
    for node in ("spark-1", "spark-2"):
        assert "b.safetensors: other bytes" in failed.failure(node)["msg"]
        assert "a.safetensors" not in failed.failure(node)["msg"]
    weights(fleet, "pull", "org/flip", "spark-1,spark-2")
    assert [(name, sent) for name, _, sent in hub.served()] == [("b.safetensors", 40 * MIB)]
    before = traffic(fleet, NAMES)
    weights(fleet, "sync", "org/flip", "spark-1,spark-2")
    got = traffic(fleet, NAMES)["spark-2"][1] - before["spark-2"][1]
    assert 40 * MIB < got < 44 * MIB
    assert fleet.on("spark-2", "stat", "-c", "%i", f"/{MODELS}/flip/a.safetensors") == kept
    weights(fleet, "verify", "org/flip", "spark-1,spark-2")
    assert here(fleet, "spark-1", "flip") == here(fleet, "spark-2", "flip") == wanted


def test_a_download_goes_on_without_its_controller(fleet: Nodes, hub: Hub, tmp_path: Path) -> None:
    wanted = hub.model("alone", {"m.safetensors": 40 * MIB})
    hub.misbehave({"m.safetensors": ["stall", "stall"]})
    run = Started(fleet, tmp_path / "log", "weights", "pull", "org/alone", "spark-1", "-e", f"hub_url={URL}")
    eventually(lambda: "m.safetensors" in str(hub.served()) or '"Fetch the weights"' in run.said, 60)
    run.kill()
    no_executor_stays(fleet, "spark-1")
    hub.misbehave({})
    joined = weights(fleet, "pull", "org/alone", "spark-1")
    assert [task["state"] for task in joined.tasks("spark-1") if task["module"] == "weights_pull"] in (["changed"], [])
    assert here(fleet, "spark-1", "alone") == wanted
    assert leftovers(fleet, "spark-1") == ""


def test_the_next_run_joins_a_download_that_goes_on(fleet: Nodes, hub: Hub, tmp_path: Path) -> None:
    wanted = hub.model("joined", {"m.safetensors": 40 * MIB})
    hub.served()
    hub.misbehave({"m.safetensors": ["slow"]})
    run = Started(fleet, tmp_path / "log", "weights", "pull", "org/joined", "spark-1", "-e", f"hub_url={URL}")
    eventually(lambda: json.loads((hub.folder / "faults.json").read_text()) == {"m.safetensors": []}, 60)
    run.kill()
    no_executor_stays(fleet, "spark-1")
    (job,) = fleet.root("spark-1").joinpath(JOBS).glob("weights-joined-*/pid")
    pid, started = job.read_text().split()
    joined = weights(fleet, "pull", "org/joined", "spark-1")
    # It was going on when the second run came, nobody else began one, and every byte came once.
    assert any(one["event"] == "progress" for one in joined.events)
    assert not job.exists() and not fleet.root("spark-1").joinpath("proc", pid).exists(), started
    assert [(first, sent) for name, first, sent in hub.served() if name == "m.safetensors"] == [(0, 40 * MIB)]
    assert here(fleet, "spark-1", "joined") == wanted
    assert leftovers(fleet, "spark-1") == ""


def test_killed_at_random_moments(fleet: Nodes, hub: Hub, tmp_path: Path) -> None:
    seed = int(os.environ.get("SPARKOPS_TEST_SEED", random.randrange(10**6)))
    chance = random.Random(seed)
    print(f"SPARKOPS_TEST_SEED={seed}")
    wanted = hub.model("kill", {f"{name}.safetensors": 48 * MIB for name in "abc"})
    nodes, pattern = NAMES[:4], ",".join(NAMES[:4])
    for number in range(20):
        if number % 5 == 0:
            for node in nodes:
                fleet.on(
                    node, "sh", "-c", f"rm -rf /{MODELS}/kill /{MODELS}/.sparkops-kill.part; rm -f {STATE_OF_KILL}"
                )
        verb = "pull" if number % 5 < 2 else "sync"
        victim = chance.choice(["sparkops", "sparkops", "node", "both"])
        run = Started(fleet, tmp_path / "log", "weights", verb, "org/kill", pattern, "-e", f"hub_url={URL}")
        run.begun()
        time.sleep(chance.uniform(0, 2.5 if verb == "pull" else 2.0))
        if victim != "sparkops":
            fleet.on(chance.choice(nodes), "sh", "-c", KILL_WEIGHTS)
        if victim != "node":
            run.kill()
        run.process.wait(120)
        assert "Traceback" not in run.said, run.said
        for node in nodes:
            no_executor_stays(fleet, node)
            there = here(fleet, node, "kill")
            assert there in ({}, wanted), (number, verb, victim, node, there)
        if number % 5 in (1, 4):
            weights(fleet, verb, "org/kill", pattern)
    for node in nodes:
        assert here(fleet, node, "kill") == wanted
        assert leftovers(fleet, node) == ""


STATE_OF_KILL = "/home/spark/.local/share/sparkops/state/weights/kill-*"
