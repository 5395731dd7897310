"""kill -9 of the controllers at 20 random moments of deploys: every node ends whole, serving, on the old release or the
new one, and the next deploy goes through.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.e2e.interrupting import Started
from tests.e2e.nodes import MODEL, Nodes, eventually, lab

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]
NAMES = [f"spark-{number}" for number in range(1, 5)]
PAIRS = [NAMES[:2], NAMES[2:]]
FOLDER = "opt/sparkops/releases/vllm"
KILLS = 20
# Seconds: a trial beyond the recipe's ready_within, and what a node may take when that is over.
MARGIN, GRACE = 1, 30
FILES = {"run", "env", "recipe.json", "serve.json", "release.json"}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """Four nodes that serve the recipe `short`: fp8 with a trial as short as this machine allows."""
    with lab(tmp_path_factory.mktemp("killed") / "lab", 4) as nodes:
        (nodes.dir / "recipes").mkdir(exist_ok=True)
        nodes.sparkops("provision", "--all-nodes", "--recipe", "fp8")
        nodes.sparkops("deploy", "fp8", "--all-nodes")
        begun = time.monotonic()
        nodes.sparkops("deploy", "fp8", "--all-nodes", "--serial", "4", "-e", "port=8001")
        ready = 3 + round(time.monotonic() - begun)
        text = f"name: short\nextends: fp8\nexpect: {{ready_within: {ready}}}\n"
        (nodes.dir / "recipes/short.yml").write_text(text)
        nodes.sparkops("deploy", "short", "--all-nodes")
        yield nodes


def trial(nodes: Nodes) -> int:
    """A trial's length in seconds."""
    return MARGIN + int((nodes.dir / "recipes/short.yml").read_text().rpartition("ready_within: ")[2].strip(" }\n"))


def link(nodes: Nodes, name: str, which: str) -> Path:
    """A node's release that `current` or `confirmed` points to."""
    folder = nodes.root(name) / FOLDER
    return folder / (folder / which).readlink()


def settled(nodes: Nodes, name: str) -> bool:
    """Whether a node's current release is on trial no more."""
    return link(nodes, name, "current") == link(nodes, name, "confirmed")


def serving(nodes: Nodes, name: str) -> str:
    """The value of RUN that the process which serves has been started with; it must generate a token."""
    eventually(lambda: nodes.token(name, MODEL), GRACE, 0.5)
    script = "tr '\\0' '\\n' < /proc/$(systemctl show -p MainPID --value sparkops-vllm)/environ | grep ^RUN="
    return nodes.on(name, "sh", "-c", f"{script} || true").strip().partition("=")[2]


def whole(nodes: Nodes, name: str) -> str:
    """The value of RUN in a node's current release, which must be whole and what is served."""
    release = link(nodes, name, "current")
    assert {path.name for path in release.iterdir()} >= FILES, name
    assert json.loads((release / "release.json").read_text())["release"] == int(release.name)
    assert not (release / "unconfirmed").exists()
    lines = (release / "env").read_text().splitlines()
    run = next((line.partition("=")[2].strip('"') for line in lines if line.startswith("RUN=")), "")
    assert serving(nodes, name) == run, f"{name} serves another release than its current one"
    return run


def all_whole(nodes: Nodes, names: list[str] = NAMES) -> list[str]:
    """Wait for the end of all trials; the value of RUN that each node serves with."""
    eventually(lambda: all(settled(nodes, name) for name in names), trial(nodes) + GRACE)
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(lambda name: whole(nodes, name), names))


def deploy(run: int, serial: str = "100%", names: list[str] = NAMES) -> tuple[str, ...]:
    """The words of a deploy that makes a new release for each `run`."""
    words = ("deploy", "short", ",".join(names), "-e", f"trial_margin={MARGIN}", "--serial", serial)
    return (*words, "-e", json.dumps({"env": {"RUN": str(run)}}))


def test_twenty_kills(fleet: Nodes, tmp_path: Path) -> None:
    seed = int(os.environ.get("SPARKOPS_TEST_SEED", random.randrange(10**6)))
    print(f"SPARKOPS_TEST_SEED={seed}")

    def kills(names: list[str]) -> None:
        killed(fleet, names, KILLS // len(PAIRS), random.Random(f"{seed} {names[0]}"), tmp_path / names[0])

    # Both at once: most of it is waiting for trials to end.
    with ThreadPoolExecutor(len(PAIRS)) as pool:
        list(pool.map(kills, PAIRS))
    last = KILLS // len(PAIRS) + 1
    fleet.sparkops(*deploy(last))
    assert set(all_whole(fleet)) == {str(last)}
    assert set(fleet.sparkops(*deploy(last)).count("changed").values()) == {0}


def killed(fleet: Nodes, names: list[str], kills: int, chance: random.Random, log: Path) -> None:
    """Kill so many deploys on two nodes, each at another moment."""
    longest = {}
    for run, serial in enumerate(("100%", "1,100%")):
        begun = time.monotonic()
        fleet.sparkops(*deploy(run, serial, names))
        longest[serial] = time.monotonic() - begun
    old = ["1"] * len(names)
    for run in range(2, kills + 2):
        serial = chance.choice(list(longest))
        # Python starts before the first node is reached.
        delay = chance.uniform(0, longest[serial] - 1)
        started = Started(fleet, log, *deploy(run, serial, names))
        started.begun()
        time.sleep(delay)
        assert started.kill() in (137, 0), started.said
        assert "Traceback" not in started.said
        # Either what becomes of the nodes, or that the next deploy goes through at once, in the trials of this one.
        said = f"{names}, run {run}, --serial {serial}: killed after {delay:.2f} s"
        if chance.random() < 0.5:
            found = all_whole(fleet, names)
            assert all(now in (before, str(run)) for now, before in zip(found, old, strict=True)), found
            print(f"{said}, {found}")
            old = found
        else:
            again = fleet.sparkops(*deploy(run, serial, names))
            assert set(again.count("failed").values()) == {0}
            assert all(settled(fleet, name) for name in names)
            old = [str(run)] * len(names)
            print(f"{said}, deployed again at once")


def test_ctrl_c_in_a_trial(fleet: Nodes, tmp_path: Path) -> None:
    before = all_whole(fleet)
    started = Started(fleet, tmp_path / "log", *deploy(100))
    eventually(lambda: not all(settled(fleet, name) for name in NAMES), 60, 0.02)
    assert started.interrupt() == 130
    last = json.loads(started.said.splitlines()[-1])
    assert (last["event"], last["exit_code"]) == ("recap", 130)
    assert "Traceback" not in started.said
    trials = {name: link(fleet, name, "current").name for name in NAMES if not settled(fleet, name)}
    assert trials
    assert all_whole(fleet) == before
    told = json.loads(fleet.plain("--json", "status").out)
    assert {name: str(told[name]["services"][0]["back_from"]) for name in trials} == trials
    again = fleet.sparkops(*deploy(100))
    assert set(again.count("failed").values()) == {0}
    assert set(all_whole(fleet)) == {"100"}


def test_a_release_that_crashes_goes_back_also_when_its_controller_is_gone(fleet: Nodes) -> None:
    """Long before the end of its trial, and before systemd gives up on the unit."""
    goal = link(fleet, "spark-2", "current")
    bad = "cp -a $(readlink current) 999; printf '#!/bin/sh\\nexit 1\\n' > 999/run"
    marker = 'echo "$(($(date +%s) + 3600)) $(cat /proc/sys/kernel/random/boot_id)" > 999/unconfirmed'
    script = f"cd /{FOLDER}; {bad}; {marker}; chown -R spark: 999; ln -sfn 999 current"
    fleet.on("spark-2", "sh", "-c", f"{script}; systemctl --no-block restart sparkops-vllm")
    assert link(fleet, "spark-2", "current").name == "999"
    eventually(lambda: link(fleet, "spark-2", "current") == goal, 60, 0.5)
    eventually(lambda: fleet.token("spark-2", MODEL), 30, 0.5)
    assert "went back from release 999" in fleet.plain("status", "spark-2").out
