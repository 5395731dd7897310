"""A served copy's life on four nodes: rolling deploys that undo themselves, rollback, a node that is cut off."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.interrupting import Started
from tests.e2e.nodes import MODEL, Nodes, eventually, lab

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]
NAMES = [f"spark-{number}" for number in range(1, 5)]
UNIT = "sparkops-vllm.service"
# Too small a pool for the context: the engine does not start.
BAD = "name: bad\nextends: fp8\nkv_cache_memory_bytes: 4294967296\n"
OTHER = "name: other\nextends: fp8\nserved_model_name: other\nexpect: {ready_within: 5}\n"


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """Four nodes that serve fp8; recipes `bad` and `other` lie beside their inventory."""
    with lab(tmp_path_factory.mktemp("fleet") / "lab", 4) as nodes:
        (nodes.dir / "recipes").mkdir(exist_ok=True)
        (nodes.dir / "recipes/bad.yml").write_text(BAD)
        (nodes.dir / "recipes/other.yml").write_text(OTHER)
        nodes.sparkops("provision", "--all-nodes", "--recipe", "fp8")
        nodes.sparkops("deploy", "fp8", "--all-nodes")
        yield nodes


def started(nodes: Nodes) -> dict[str, str]:
    """When each node's unit was started, and its pid."""
    words = ("systemctl", "show", "-p", "MainPID,ExecMainStartTimestampMonotonic", UNIT)
    return {name: nodes.on(name, *words) for name in NAMES}


def release(nodes: Nodes, name: str) -> str:
    return nodes.on(name, "readlink", "/opt/sparkops/releases/vllm/current").strip()


def test_a_release_that_never_gets_healthy_stops_at_the_canary(fleet: Nodes) -> None:
    before = started(fleet)
    unit = fleet.on("spark-1", "cat", f"/etc/systemd/system/{UNIT}")
    # The unit is another one too, and goes back with the release.
    done = fleet.sparkops("deploy", "bad", "--all-nodes", "-e", "memory_wait=60", rc=1)
    assert done.count("failed") == {"spark-1": 1, "spark-2": 0, "spark-3": 0, "spark-4": 0}
    message = done.failure("spark-1")["msg"]
    assert "5.08 GiB" in message, message
    assert "release 1 serves again" in message, message
    after = started(fleet)
    assert {name: after[name] for name in NAMES[1:]} == {name: before[name] for name in NAMES[1:]}
    assert release(fleet, "spark-1") == "1"
    assert fleet.on("spark-1", "cat", f"/etc/systemd/system/{UNIT}") == unit
    assert fleet.token("spark-1", MODEL)
    again = fleet.sparkops("deploy", "fp8", "--all-nodes")
    assert set(again.count("changed").values()) == {0}


def test_no_more_batches_than_the_budget_of_failures_allows(fleet: Nodes) -> None:
    before = {name: release(fleet, name) for name in NAMES}
    defect = "{{ 'length' if inventory_hostname == 'spark-2' else 'none' }}"
    words = (
        "deploy",
        "fp8",
        "--all-nodes",
        "--serial",
        "2",
        "-e",
        json.dumps({"env": {"SPARKOPS_LAB_DEFECT": defect}}),
    )
    done = fleet.sparkops(*words, "--max-fail", "0", rc=1)
    assert done.count("failed") == {"spark-1": 0, "spark-2": 1, "spark-3": 0, "spark-4": 0}
    assert "1 failed, and no more than 0 may: spark-3, spark-4 not touched" in done.err
    assert {name: release(fleet, name) == before[name] for name in NAMES} == {name: name != "spark-1" for name in NAMES}
    # A half is not more than a half.
    done = fleet.sparkops(*words, "--max-fail", "50%", rc=1)
    assert release(fleet, "spark-4") != before["spark-4"]
    fleet.sparkops("deploy", "fp8", "--all-nodes")


def test_a_new_release_rolls_and_rolls_back(fleet: Nodes) -> None:
    done = fleet.sparkops("deploy", "other", "--all-nodes")
    ends = [event["host"] for event in done.events if event["event"] == "host_end" and event["play"] == "Deploy"]
    assert ends[0] == "spark-1"
    assert all(fleet.token(name, "other") for name in NAMES)
    begun = time.monotonic()
    back = fleet.sparkops("rollback", "--all-nodes")
    took = time.monotonic() - begun
    assert all(count > 0 for count in back.count("changed").values())
    assert all(fleet.token(name, MODEL) for name in NAMES)
    begun = time.monotonic()
    fleet.sparkops("restart", "--all-nodes")
    assert took < 2 * (time.monotonic() - begun)


def test_rollback_to_a_release_that_is_named(fleet: Nodes) -> None:
    fleet.sparkops("deploy", "fp8", "spark-1")
    now = release(fleet, "spark-1")
    message = fleet.sparkops("rollback", "spark-1", "--to", "999", rc=1).failure("spark-1")["msg"]
    assert f"vllm has no release 999 to go back to; it is at {now}, and there are: " in message
    again = fleet.sparkops("rollback", "spark-1", "--to", now)
    assert again.count("changed") == {"spark-1": 0}
    assert f"warning: spark-1: release {now} is current already" in again.err
    fleet.sparkops("deploy", "bad", "spark-1", rc=1)
    there = fleet.on("spark-1", "ls", "/opt/sparkops/releases/vllm").split()
    unseen = str(max(int(name) for name in there if name.isdigit()))
    done = fleet.sparkops("rollback", "spark-1", "--to", unseen, rc=1)
    assert f"warning: spark-1: release {unseen} has never been confirmed" in done.err
    fleet.sparkops("rollback", "spark-1", "--to", now)
    assert fleet.token("spark-1", MODEL)
    for bad in ("0", "-1", "x", ""):
        assert fleet.plain("rollback", "spark-1", "--to", bad).rc == 2


@pytest.mark.parametrize("stays", [False, True], ids=["so is its controller", "its controller stays"])
def test_a_node_that_is_cut_off_in_mid_deploy_goes_back_by_itself(fleet: Nodes, tmp_path: Path, stays: bool) -> None:
    fleet.sparkops("deploy", "fp8", "--all-nodes")
    before = {name: release(fleet, name) for name in NAMES}
    goal = before["spark-2"]
    # Confirmation comes over a connection that is made anew, which the cut prevents.
    words = ("deploy", "other", "spark-2,spark-3", "-e", "trial_margin=3")
    running = Started(fleet, tmp_path / "log", *words)
    eventually(lambda: release(fleet, "spark-2") != goal, 60, 0.02)
    fleet.lab("cut", "spark-2")
    try:
        trial = release(fleet, "spark-2")
        if not stays:
            running.kill()
        eventually(lambda: release(fleet, "spark-2") == goal, 60, 0.5)
        eventually(lambda: fleet.token("spark-2", MODEL), 30, 0.5)
        if stays:
            # What the node does not acknowledge for a minute ends the connection, and nothing else was touched.
            assert running.process.wait(120) == 4
            ends = [json.loads(line) for line in running.said.splitlines() if '"host_end"' in line]
            (end,) = [one for one in ends if one["play"] == "Deploy"]
            assert (end["host"], end["state"]) == ("spark-2", "unreachable")
            assert "the connection ended early: " in end["msg"]
            assert release(fleet, "spark-3") == before["spark-3"]
        alone = json.loads(fleet.plain("--json", "status").out)
        assert "no SSH connection" in alone["spark-2"]["trouble"]
        assert alone["spark-3"]["services"][0]["health"] == 200
    finally:
        fleet.lab("mend", "spark-2")
    told = json.loads(fleet.plain("--json", "status", "spark-2").out)["spark-2"]["services"][0]
    assert (str(told["release"]), told["confirmed"], str(told["back_from"])) == (goal, True, trial)
    assert (told["health"], told["unit_state"]) == (200, "active")
    plain = fleet.plain("status", "spark-2")
    assert f"went back from release {trial}" in plain.out, plain.out
    fleet.sparkops("deploy", "other", "spark-2")
    assert "went back" not in fleet.plain("status", "spark-2").out
    assert fleet.token("spark-2", "other")


def test_a_trial_ends_also_through_a_power_cut(fleet: Nodes) -> None:
    fleet.sparkops("deploy", "fp8", "spark-3")
    goal = release(fleet, "spark-3")
    folder = "/opt/sparkops/releases/vllm"
    script = f"cd {folder}; cp -a $(readlink current) 99; echo 1 > 99/unconfirmed; ln -sfn 99 current"
    fleet.on("spark-3", "sh", "-c", script)
    fleet.lab("reboot", "spark-3")
    eventually(lambda: fleet.token("spark-3", MODEL), 60, 0.5)
    assert release(fleet, "spark-3") == goal
    fleet.on("spark-3", "rm", "-r", f"{folder}/99")


def test_remove_takes_away_what_sparkops_made_and_only_that(fleet: Nodes) -> None:
    fleet.sparkops("remove", "spark-4", "--engines")
    left = fleet.on("spark-4", "sh", "-c", "ls /opt/sparkops; ls /opt/sparkops/releases; ls /etc/systemd/system")
    assert "vllm" not in left
    assert "engines" not in left
    assert fleet.on("spark-4", "ls", "/home/spark/models/hf")
    assert set(fleet.sparkops("remove", "spark-4", "--engines").count("changed").values()) == {0}
