"""Weights while things go wrong: processes killed in mid-copy, a reboot, two operators, a portal's page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.hubs import MIB, MODELS, URL, Hub, here, hub_in, leftovers, weights
from tests.e2e.interrupting import Started, no_executor_stays
from tests.e2e.nodes import Nodes, eventually, lab

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]

NAMES = [f"spark-{number}" for number in range(1, 4)]
SIZE = 512 * MIB


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    with lab(tmp_path_factory.mktemp("hostile") / "lab", len(NAMES)) as nodes:
        nodes.sparkops("provision", "--all-nodes", "--recipe", "fp8")
        yield nodes


@pytest.fixture(scope="module")
def hub(fleet: Nodes, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    with hub_in(fleet, tmp_path_factory.mktemp("hub")) as hub:
        yield hub


def copying(nodes: Nodes, log: Path, model: str) -> Started:
    """A sync to spark-2 that is under way."""
    run = Started(nodes, log, "weights", "sync", f"org/{model}", "spark-1,spark-2")
    staged = nodes.root("spark-2") / MODELS / f".sparkops-{model}.part"
    # rsync writes to a hidden name's file or, appending, to its own.
    eventually(lambda: staged.is_dir() and any(one.stat().st_size > MIB for one in staged.iterdir()), 60, 0.002)
    return run


@pytest.mark.parametrize("victim", ["spark-1", "spark-2"], ids=["source", "taker"])
def test_an_rsync_is_killed(fleet: Nodes, hub: Hub, tmp_path: Path, victim: str) -> None:
    model = f"killed-{victim}"
    wanted = hub.model(model, {"a.safetensors": SIZE})
    weights(fleet, "pull", f"org/{model}", "spark-1")
    run = copying(fleet, tmp_path / "log", model)
    fleet.on(victim, "sh", "-c", "pkill -9 rsync; true")
    assert run.process.wait(120) == 1, run.said
    assert "ended" in run.said and "Traceback" not in run.said
    assert here(fleet, "spark-2", model) == {}
    weights(fleet, "sync", f"org/{model}", "spark-1,spark-2")
    assert here(fleet, "spark-2", model) == wanted
    assert all(leftovers(fleet, node) == "" for node in NAMES)


def test_the_source_reboots_in_mid_copy(fleet: Nodes, hub: Hub, tmp_path: Path) -> None:
    wanted = hub.model("reboot", {"a.safetensors": SIZE})
    weights(fleet, "pull", "org/reboot", "spark-1")
    run = copying(fleet, tmp_path / "log", "reboot")
    fleet.lab("reboot", "spark-1")
    assert run.process.wait(180) in (1, 4), run.said
    assert "Traceback" not in run.said
    assert here(fleet, "spark-2", "reboot") == {}
    weights(fleet, "sync", "org/reboot", "spark-1,spark-2")
    assert here(fleet, "spark-2", "reboot") == wanted
    assert all(leftovers(fleet, node) == "" for node in NAMES)


def test_two_operators_and_ctrl_c(fleet: Nodes, hub: Hub, tmp_path: Path) -> None:
    wanted = hub.model("two", {"a.safetensors": 24 * MIB})
    hub.served()
    hub.misbehave({"a.safetensors": ["slow"]})
    run = Started(fleet, tmp_path / "log", "weights", "pull", "org/two", "spark-1", "-e", f"hub_url={URL}")
    eventually(lambda: (fleet.root("spark-1") / MODELS / ".sparkops-two.part/.pull.json").exists(), 60)
    second = fleet.plain("weights", "pull", "org/two", "spark-1", "-e", f"hub_url={URL}")
    assert second.rc == 5 and "lease" in second.err + second.out
    assert run.interrupt() == 130
    no_executor_stays(fleet, "spark-1")
    weights(fleet, "pull", "org/two", "spark-1")
    assert here(fleet, "spark-1", "two") == wanted
    assert [(first, sent) for name, first, sent in hub.served() if name == "a.safetensors"] == [(0, 24 * MIB)]
    assert leftovers(fleet, "spark-1") == ""


def test_a_portal_s_page_instead_of_a_listing(fleet: Nodes, hub: Hub) -> None:
    hub.model("portal", {"a.safetensors": MIB})
    (hub.folder / "html").touch()
    try:
        failed = weights(fleet, "pull", "org/portal", "spark-1", rc=1).failure("spark-1")
        assert f"{URL} does not give org/portal at main" in failed["msg"]
        assert "Traceback" not in failed["msg"]
    finally:
        (hub.folder / "html").unlink()
    weights(fleet, "prune", "spark-1", "--model", "portal")
    assert leftovers(fleet, "spark-1") == ""
