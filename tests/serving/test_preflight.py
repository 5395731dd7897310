"""Each check of the preflight, as data: what was found on a node, and the verdict."""

from __future__ import annotations

from typing import Any

import pytest

from sparkops.errors import InputError
from sparkops.recipes.load import Catalogue
from sparkops.serving.preflight import CHECKS, Plan, Row, judge, message, together
from sparkops.serving.preflight_evidence import Evidence

GIB = 1 << 30
GB = 10**9
PATH = "/home/spark/models/hf/Qwen3.6-35B-A3B-FP8"
ENGINE = "/opt/sparkops/engines/vllm-0.24.0-0123456789ab"
UNIT = "sparkops-vllm.service"
TOTAL = int(121.7 * GIB)
RESIDENT = 37667035872
RECIPE = Catalogue().recipe("fp8")
# A Spark on which nothing is served yet.
BARE: dict[str, Any] = {
    "architecture": "aarch64",
    "unit": UNIT,
    "driver": {"version": "580.95.05"},
    "engine": {"path": ENGINE, "state": "missing"},
    "checkpoint": {"path": PATH, "resident": RESIDENT},
    "memory": {"total": TOTAL, "available": 118 * GIB, "free": 117 * GIB},
    "disks": [
        {"name": "checkpoint", "path": "/home", "free": 900 * GB, "device": 1},
        {"name": "engine", "path": "/opt", "free": 900 * GB, "device": 1},
    ],
    "in_sync": True,
}
OWN = {
    **{"name": "vllm", "unit": UNIT, "own": True, "pid": 7, "active": True, "enabled": True, "resident": RESIDENT},
    "recipe": {"name": "fp8", "kv_cache_memory_bytes": 6 * GIB, "gpu_memory_utilization": 0.6},
}
OTHER = {
    **{"name": "a", "unit": "sparkops-a.service", "port": 8001, "pid": 8, "active": True, "resident": 20 * GIB},
    "recipe": {"name": "small", "kv_cache_memory_bytes": 6 * GIB, "gpu_memory_utilization": 0.3},
}
SQUATTER = {
    **{"address": "127.0.0.1", "pid": 77, "command": "python3 -m http.server 8000", "unit": "squatter.service"},
    "ours": False,
}
MINE = {"address": "127.0.0.1", "pid": 7, "command": "vllm", "unit": UNIT, "ours": True}


def rows(plan: Plan | None = None, ignore: tuple[str, ...] = (), **found: Any) -> dict[str, Row]:
    """The verdicts on BARE with some other evidence."""
    plan = plan or Plan(RECIPE, "vllm", "127.0.0.1", 8000, ["aarch64", "x86_64"], 11)
    return {row.check: row for row in judge(Evidence.of({**BARE, **found}), plan, ignore)}


def memory(available: float, total: float = 121.7) -> dict[str, Any]:
    return {"total": int(total * GIB), "available": int(available * GIB), "free": int(available * GIB)}


def space(checkpoint: float, engine: float, *, devices: tuple[int, int] = (1, 2)) -> list[dict[str, Any]]:
    return [
        {"name": "checkpoint", "path": "/home", "free": int(checkpoint * GB), "device": devices[0]},
        {"name": "engine", "path": "/opt", "free": int(engine * GB), "device": devices[1]},
    ]


GONE = {"path": PATH, "present": False}
COMPLETE = {"path": ENGINE, "state": "complete"}
ADOPTED = {"path": "/venv", "adopted": True}
STATED = {
    **OTHER,
    "resident": None,
    "recipe": {"name": "s", "kv_cache_memory_bytes": GIB, "requires": {"memory_gib": 70}},
}
CASES: list[tuple[str, dict[str, Any], str, str]] = [
    # check, evidence, verdict, a piece of what is said
    ("driver", {}, "pass", "580.95.05"),
    ("driver", {"driver": {"version": "570.86.10"}}, "fail", "570.86.10, and fp8 needs 580"),
    ("driver", {"driver": {"error": "command not found"}}, "fail", "command not found"),
    ("driver", {"driver": {"version": "590.1"}}, "pass", "590.1"),
    ("architecture", {"architecture": "riscv64"}, "fail", "riscv64: vllm-0.24.0 has locks for aarch64, x86_64"),
    ("architecture", {}, "pass", "aarch64"),
    ("engine", {}, "pass", "vllm-0.24.0 will be built"),
    ("engine", {"engine": COMPLETE}, "pass", "vllm-0.24.0 is there"),
    ("engine", {"engine": {**COMPLETE, "state": "untried"}}, "pass", "to be tried yet"),
    ("engine", {"engine": {**COMPLETE, "problems": ["torch 2.10.0, locked: 2.11.0"]}}, "warn", "torch 2.10.0"),
    ("engine", {"engine": {**COMPLETE, "state": "other", "problems": ["not ours"]}}, "fail", "not ours"),
    ("engine", {"engine": ADOPTED}, "pass", "/venv is adopted"),
    ("engine", {"engine": {**ADOPTED, "problems": ["vllm 0.23.0, locked: 0.24.0"]}}, "fail", "/venv: vllm 0.23.0"),
    ("engine", {"engine": {**ADOPTED, "path": "venv"}}, "fail", "no absolute path"),
    ("disk", {}, "pass", "11.0 GB fit"),
    ("disk", {"engine": COMPLETE}, "pass", "nothing big"),
    ("disk", {"checkpoint": GONE, "disks": space(36, 900)}, "fail", "/home has 36.0 GB free"),
    ("disk", {"checkpoint": GONE, "disks": space(38, 900)}, "pass", "48.0 GB fit"),
    ("disk", {"checkpoint": GONE, "disks": space(38, 38, devices=(1, 1))}, "fail", "the checkpoint 37.0 GB and"),
    ("disk", {"checkpoint": {**GONE, "held": 30 * GB}, "disks": space(8, 900)}, "pass", "18.0 GB fit"),
    ("disk", {"disks": space(0, 10)}, "fail", "the engine 11.0 GB"),
    ("disk", {"disks": space(0, 1), "engine": {**BARE["engine"], "kin": True}}, "pass", "nothing big"),
    ("disk", {"disks": space(0, 1), "engine": {**ADOPTED, "state": "missing"}}, "pass", "nothing big"),
    ("memory", {}, "pass", "51.1 GiB (weights 35.1, KV pool 6.0, the rest 10)"),
    ("memory", {"memory": memory(50)}, "fail", "the rest 10), and 50.0 GiB are available"),
    ("memory", {"memory": memory(60)}, "fail", "start-up check wants 73.0 GiB (gpu_memory_utilization 0.6), and 60.0"),
    ("memory", {"memory": memory(50, total=52)}, "fail", "of 52.0 GiB are usable"),
    ("memory", {"memory": memory(74)}, "pass", "there is room"),
    ("memory", {"memory": memory(40), "services": [OWN]}, "pass", "there is room"),
    ("memory", {"memory": memory(40), "services": [{**OWN, "pid": 0}]}, "fail", "40.0 GiB are available"),
    ("memory", {"memory": memory(10), "services": [OWN]}, "fail", "61.1 GiB are available once the copy that serves"),
    ("memory", {"checkpoint": {"path": PATH}, "memory": memory(50)}, "fail", "weights 35.3"),
    ("port", {}, "pass", "8000 is free"),
    ("port", {"listeners": [MINE]}, "pass", "8000 is ours"),
    ("port", {"listeners": [SQUATTER]}, "fail", "pid 77 (python3 -m http.server 8000) of the unit squatter.service"),
    ("port", {"listeners": [{**SQUATTER, "address": "10.0.0.1"}]}, "pass", ""),
    ("port", {"listeners": [{**SQUATTER, "address": "0.0.0.0", "unit": "session-3.scope"}]}, "fail", "of no unit"),
    ("port", {"listeners": [{"address": "::", "pid": None, "command": "", "unit": ""}]}, "fail", "may not see"),
    ("services", {}, "pass", "no other service"),
    ("services", {"services": [OWN]}, "pass", "no other service"),
    ("services", {"services": [OTHER]}, "warn", "together 87.1 GiB of 114.0 GiB usable: a (small) 36.0 GiB, vllm"),
    ("services", {"services": [{**OTHER, "resident": 60 * GIB}]}, "fail", "together 127.1 GiB"),
    ("services", {"services": [{**OTHER, "resident": 60 * GIB, "active": False}]}, "pass", "no other service"),
    ("services", {"services": [{**OTHER, "resident": 60 * GIB, "active": False, "enabled": True}]}, "fail", "127.1"),
    ("services", {"services": [{**OTHER, "port": 8000}]}, "fail", "the service a has port 8000"),
    ("services", {"services": [STATED]}, "fail", "s) 70.0 GiB"),
    ("services", {"services": [{**OTHER, "recipe": {"gpu_memory_utilization": 0.6}}]}, "fail", "a (?) 73.0 GiB"),
    ("services", {"services": [{**OTHER, "recipe": {}}]}, "warn", "a (?) unknown"),
    ("clock", {}, "pass", "in sync"),
    ("clock", {"in_sync": False}, "warn", "not in sync"),
    ("clock", {"in_sync": None}, "pass", "not known"),
    ("tools", {}, "pass", "nvcc"),
    ("tools", {"tools": {"nvcc": False, "headers": False}}, "warn", "nvcc (in /usr/local/cuda/bin), Python.h"),
    ("tools", {"tools": {"ninja": False}}, "warn", "missing: ninja"),
    ("reboot", {}, "pass", "none"),
    ("reboot", {"reboot_required": True}, "warn", "pending"),
    ("linger", {"linger": False}, "pass", "the deploy switches it on"),
    ("linger", {"linger": True}, "pass", "on"),
]  # fmt: skip


@pytest.mark.parametrize(("check", "found", "verdict", "says"), CASES)
def test_a_check(check: str, found: dict[str, Any], verdict: str, says: str) -> None:
    judged = rows(**found)
    assert list(judged) == list(CHECKS)
    row = judged[check]
    assert (row.verdict, bool(row.remedy)) == (verdict, verdict != "pass"), row
    assert says in row.found
    # Nothing else is wrong.
    related = {"services", "memory", "architecture"}
    assert {other.check for other in judged.values() if other.verdict == "fail"} <= {check, *related}


def test_every_check_passes_and_warns_or_fails_in_some_case() -> None:
    seen = {(check, verdict == "pass") for check, _, verdict, _ in CASES}
    assert {(check, good) for check in CHECKS for good in (True, False)} - seen == {("linger", False)}


def test_the_cure_of_a_share_that_is_too_large_fits() -> None:
    row = rows(memory=memory(60))["memory"]
    assert "gpu_memory_utilization 0.49" in row.remedy
    assert 0.49 * 121.7 < 60


def test_what_is_ignored_warns_and_says_so() -> None:
    judged = rows(ignore=("driver", "memory"), driver={"version": "1"}, memory=memory(1), listeners=[SQUATTER])
    assert {name: judged[name].verdict for name in ("driver", "memory", "port")} == {
        **{"driver": "warn", "memory": "warn", "port": "fail"},
    }
    assert judged["driver"].found.endswith("(ignored)")
    assert rows(ignore=("port",))["port"].verdict == "pass"


def test_an_unknown_check_cannot_be_ignored() -> None:
    with pytest.raises(InputError, match="no check 'memori'") as error:
        rows(ignore=("memori",))
    assert "memory" in (error.value.hint or "")


def test_the_message_names_each_failed_check_and_its_remedy() -> None:
    judged = rows(driver={"version": "570.1"}, listeners=[SQUATTER], reboot_required=True)
    said = message(judged.values())
    assert "- driver: 570.1, and fp8 needs 580 or newer; install the distribution's" in said
    assert "- port: 8000 is taken by pid 77" in said
    assert "systemctl stop squatter.service" in said
    assert "-e port=8001" in said
    assert "reboot" not in said.replace("reboot, and run this again", "")
    assert "-e preflight_ignore=driver,port" in said
    assert message(rows().values()) == ""


def test_nodes_that_agree_share_a_row() -> None:
    nodes = {"one": rows(), "two": rows(driver={"version": "570.1"}), "three": rows()}
    shown = together({name: list(judged.values()) for name, judged in nodes.items()})
    drivers = [(one.row.verdict, one.hosts) for one in shown if one.row.check == "driver"]
    assert drivers == [("pass", ["one", "three"]), ("fail", ["two"])]
    assert len(shown) == len(CHECKS) + 1
