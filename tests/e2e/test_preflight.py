"""deploy's preflight on nodes that boot systemd: what is not as it must be is named, and nothing there is touched."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.listing import differences, listing
from tests.e2e.nodes import MODEL, Done, Nodes, lab

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300)]

ONE, TWO, THREE = (f"spark-{number}" for number in (1, 2, 3))
UNIT = "sparkops-vllm.service"
CURRENT = "/opt/sparkops/releases/vllm/current"
MODELS = "/home/spark/models/hf"
VENV = "/srv/venv"
DRIVER = "/etc/sparkops-lab/driver"
RECIPES = {
    # Too small a pool for the context: the engine does not start.
    "bad": "name: bad\nextends: fp8\nkv_cache_memory_bytes: 4294967296\n",
    "small": "name: small\nextends: fp8\nserved_model_name: small\ngpu_memory_utilization: 0.42\n",
    "large": "name: large\nextends: fp8\ngpu_memory_utilization: 0.42\nkv_cache_memory_bytes: 25769803776\n",
}
SQUAT = "systemd-run -q --unit=squatter python3 -m http.server 8000 --bind 127.0.0.1; sleep 1"


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """Three nodes; fp8's engine is there, and nothing is served."""
    with lab(tmp_path_factory.mktemp("preflight") / "lab", 3) as nodes:
        (nodes.dir / "recipes").mkdir(exist_ok=True)
        for name, text in RECIPES.items():
            (nodes.dir / "recipes" / f"{name}.yml").write_text(text)
        nodes.sparkops("provision", "--all-nodes", "--recipe", "fp8")
        yield nodes


def checks(done: Done, verdict: str) -> dict[str, dict[str, Any]]:
    """The rows of the table that have a verdict."""
    (table,) = [event for event in done.events if event["event"] == "preflight"]
    return {row["check"]: row for row in table["checks"] if row["verdict"] == verdict}


def refused(nodes: Nodes, node: str, *words: str) -> str:
    """A deploy that the preflight refuses: its message. Nothing on the node has changed."""
    before = listing(nodes, node)
    done = nodes.sparkops("deploy", *words, rc=1)
    failure = done.failure(node)
    assert (failure["task"], failure["module"]) == ("Judge what was found", "preflight_verdict")
    assert differences(before, listing(nodes, node)) == {}
    message: str = failure["msg"]
    return message


def set_memory(nodes: Nodes, node: str, gib: int) -> None:
    """What of its memory is available."""
    file = nodes.root(node) / "etc/sparkops-lab/meminfo"
    lines = file.read_text().splitlines()
    file.write_text("\n".join(f"{one[:13]} {gib << 20:12} kB" if "Avail" in one else one for one in lines) + "\n")


def test_a_check_shows_the_table_and_writes_nothing(fleet: Nodes) -> None:
    before = {node: listing(fleet, node) for node in (ONE, TWO, THREE)}
    done = fleet.plain("deploy", "fp8", "--all-nodes", "--check")
    assert done.rc == 0, done.out + done.err
    lines = [line.split(maxsplit=5) for line in done.out.splitlines()]
    assert ["pass", "driver", "all", "3", "nodes", "580.95.05"] in lines
    assert ["pass", "port", "all", "3", "nodes", "8000 is free"] in lines
    assert ["pass", "engine", "all", "3", "nodes", "vllm-0.24.0 is there"] in lines
    assert all(differences(before[node], listing(fleet, node)) == {} for node in before)
    judged = [
        event for event in fleet.sparkops("deploy", "fp8", ONE, "--check").events if event["event"] == "preflight"
    ]
    assert len(judged) == 1


def test_a_driver_that_is_too_old_and_the_next_node_is_the_canary(fleet: Nodes) -> None:
    fleet.on(ONE, "sh", "-c", f"echo 570.86.10 > {DRIVER}")
    before = {node: listing(fleet, node) for node in (ONE, THREE)}
    done = fleet.sparkops("deploy", "bad", "--all-nodes", rc=1)
    assert "- driver: 570.86.10, and bad needs 580 or newer; install the distribution's" in done.failure(ONE)["msg"]
    assert checks(done, "fail")["driver"]["hosts"] == [ONE]
    assert "did not get healthy" in done.failure(TWO)["msg"]
    assert done.count("failed") == {ONE: 1, TWO: 1, THREE: 0}
    assert all(differences(before[node], listing(fleet, node)) == {} for node in before)

    done = fleet.sparkops("deploy", "fp8", "--all-nodes", rc=1)
    assert done.count("failed") == {ONE: 1, TWO: 0, THREE: 0}
    assert fleet.token(TWO, MODEL)
    assert fleet.token(THREE, MODEL)
    assert differences(before[ONE], listing(fleet, ONE)) == {}
    fleet.on(ONE, "sh", "-c", f"echo 580.95.05 > {DRIVER}")


def test_a_port_that_a_foreign_server_holds(fleet: Nodes) -> None:
    fleet.on(ONE, "sh", "-c", SQUAT)
    pid = fleet.on(ONE, "systemctl", "show", "-P", "MainPID", "squatter").strip()
    message = refused(fleet, ONE, "fp8", ONE)
    assert f"8000 is taken by pid {pid} (" in message
    assert "http.server 8000" in message
    assert "of the unit squatter.service" in message
    assert "systemctl stop squatter.service" in message
    assert fleet.on(ONE, "systemctl", "show", "-P", "MainPID", "squatter").strip() == pid
    fleet.on(ONE, "systemctl", "stop", "squatter")


def test_a_disk_that_is_too_small(fleet: Nodes) -> None:
    fleet.on(ONE, "mount", "-t", "tmpfs", "-o", "size=100m", "tmpfs", MODELS)
    message = refused(fleet, ONE, "fp8", ONE)
    assert f"- disk: {MODELS}/Qwen3.6-35B-A3B-FP8 has 0.1 GB free, and needed are for the checkpoint 37.0 GB" in message
    fleet.on(ONE, "umount", MODELS)


def test_memory_that_is_too_thin_and_who_knows_better(fleet: Nodes) -> None:
    set_memory(fleet, ONE, 45)
    message = refused(fleet, ONE, "fp8", ONE)
    assert "needs 51.1 GiB (weights 35.1, KV pool 6.0, the rest 10), and 45.0 GiB are available" in message
    set_memory(fleet, ONE, 60)
    message = refused(fleet, ONE, "fp8", ONE)
    assert "start-up check wants 73.0 GiB (gpu_memory_utilization 0.6), and 60.0 GiB are available" in message
    # The start itself would wait two minutes for the memory.
    hasty = ("-e", "memory_wait=1")
    done = fleet.sparkops("deploy", "fp8", ONE, "-e", "preflight_ignore=memory", *hasty)
    assert checks(done, "warn")["memory"]["found"].endswith("(ignored)")
    assert fleet.token(ONE, MODEL)
    # The memory that its own copy holds comes back when that is replaced.
    again = fleet.sparkops("deploy", "fp8", ONE, *hasty)
    assert (again.count("changed"), checks(again, "fail")) == ({ONE: 0}, {})
    fleet.on(ONE, "systemctl", "stop", UNIT)
    assert "60.0 GiB are available" in refused(fleet, ONE, "fp8", ONE)
    set_memory(fleet, ONE, 118)
    fleet.sparkops("deploy", "fp8", ONE)
    fleet.sparkops("deploy", "fp8", ONE, "-e", "preflight_ignore=memori", rc=2)


def test_several_services_on_one_node(fleet: Nodes) -> None:
    fleet.sparkops("deploy", "fp8", THREE)
    started = fleet.on(THREE, "systemctl", "show", "-p", "ExecMainStartTimestampMonotonic", UNIT)
    assert "the service vllm has port 8000" in refused(fleet, THREE, "small", THREE, "--service", "a")
    message = refused(fleet, THREE, "large", THREE, "--service", "a", "-e", "port=8001")
    assert "- services: together 120.2 GiB of 114.0 GiB usable: vllm (fp8) 51.1 GiB, a 69.1 GiB" in message
    done = fleet.sparkops("deploy", "small", THREE, "--service", "a", "-e", "port=8001")
    assert "vllm (fp8) 51.1 GiB, a 51.1 GiB" in checks(done, "warn")["services"]["found"]
    assert fleet.token(THREE, "small", 8001)
    assert fleet.token(THREE, MODEL)
    for words in (("fp8",), ("small", "--service", "a", "-e", "port=8001")):
        again = fleet.sparkops("deploy", *words, THREE)
        assert again.count("changed") == {THREE: 0}
    assert fleet.on(THREE, "systemctl", "show", "-p", "ExecMainStartTimestampMonotonic", UNIT) == started
    # Neither may grow into what is the other's.
    assert "together 120.2 GiB" in refused(fleet, THREE, "large", THREE)
    fleet.sparkops("remove", THREE, "--service", "a")


def adopting(nodes: Nodes, folder: Path) -> Path:
    """The lab's inventory, in which spark-2 names its own engine."""
    document = yaml.safe_load(nodes.inventory.read_text())
    document["sparks"]["hosts"][TWO]["engine_path"] = VENV
    path = folder / "hosts.yml"
    path.write_text(yaml.safe_dump(document))
    return path


def test_an_engine_that_the_user_names_is_adopted(fleet: Nodes, tmp_path: Path) -> None:
    inventory = adopting(fleet, tmp_path)
    for name in ("engines", "patches", "recipes"):
        (tmp_path / name).symlink_to(fleet.dir / name)
    fleet.on(TWO, "sh", "-c", f"cp -a /opt/sparkops/engines/vllm-0.24.0-* {VENV}; rm {VENV}/sparkops.json")
    before = fleet.on(TWO, "sh", "-c", f"find {VENV} -type f | sort | xargs sha256sum")
    done = fleet.sparkops("deploy", "fp8", TWO, inventory=inventory)
    (built,) = [task for task in done.tasks(TWO) if task["module"] == "python_venv"]
    assert built["state"] == "skipped"
    assert fleet.token(TWO, MODEL)
    assert f"exec {VENV}/bin/vllm serve" in fleet.on(TWO, "cat", f"{CURRENT}/run")
    assert json.loads(fleet.on(TWO, "cat", f"{CURRENT}/release.json"))["engine"] == VENV
    again = fleet.sparkops("deploy", "fp8", TWO, inventory=inventory)
    assert [(task["task"], task["msg"]) for task in again.tasks(TWO) if task["state"] == "changed"] == []
    verified = fleet.plain("verify", TWO, inventory=inventory)
    assert (verified.rc, f"{VENV} is adopted" in verified.out) == (0, True), verified

    site = f"{VENV}/lib/python3*/site-packages"
    fleet.on(TWO, "sh", "-c", f"cd {site}; mv vllm-0.24.0.dist-info vllm-0.23.0.dist-info")
    refusal = fleet.sparkops("deploy", "fp8", TWO, inventory=inventory, rc=1).failure(TWO)["msg"]
    assert f"- engine: {VENV}: vllm 0.23.0, locked: 0.24.0; make it what fp8 needs, or leave engine_path out" in refusal
    fleet.on(TWO, "sh", "-c", f"cd {site}; mv vllm-0.23.0.dist-info vllm-0.24.0.dist-info")

    # bf16's engine carries a patch, which this one does not: it is not put into what is not ours.
    refusal = fleet.sparkops("deploy", "bf16", TWO, "-e", f"model_source={MODELS}/Qwen-AgentWorld-35B-A3B", rc=1,
                             inventory=inventory).failure(TWO)["msg"]  # fmt: skip
    assert "the patch qwen3_5-language-only-guard is not in" in refusal
    fleet.sparkops("remove", TWO, "--engines")
    assert fleet.on(TWO, "sh", "-c", f"find {VENV} -type f | sort | xargs sha256sum") == before


def test_an_engine_that_is_not_there(fleet: Nodes) -> None:
    assert f"- engine: {VENV}x: there is no such folder" in refused(
        fleet, ONE, "fp8", ONE, "-e", f"engine_path={VENV}x"
    )
    assert "no absolute path" in refused(fleet, ONE, "fp8", ONE, "-e", "engine_path=~/venv")
