"""Runs that are stopped half-way: nothing half stays, and the next run ends well."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.interrupting import Started, frozen, no_executor_stays
from tests.e2e.nodes import MODEL, PASSWORD, Nodes, eventually, lab

pytestmark = pytest.mark.lab

NODES = ("spark-1", "spark-2")
# The build and what it has started, as an end of the node's power would have it.
KILL_JOBS = (
    'for job in /home/spark/.local/share/sparkops/state/jobs/*/pid; do read -r pid _ < "$job";'
    " kill -9 $(cat /proc/$pid/task/$pid/children) $pid; done"
)
LEFTOVERS = (
    "find / -xdev ( -path /proc -o -path /sys -o -path /tmp ) -prune -o "
    "( -name .sparkops-* -o -name *.building-* -o -name *.failed ) -print"
)
CLEAN = (
    "systemctl disable --now sparkops-vllm 2>/dev/null; rm -f /etc/systemd/system/sparkops-vllm.service;"
    " systemctl daemon-reload; rm -rf /opt/sparkops /home/spark/.local/share/sparkops"
)


@pytest.fixture(scope="module")
def disturbed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    with lab(tmp_path_factory.mktemp("kill") / "lab", 2, "nspawn", "--sudo-password", f"spark-2={PASSWORD}") as nodes:
        yield nodes


@pytest.fixture
def fresh(disturbed: Nodes) -> Nodes:
    """Nodes without anything of sparkops; packages stay."""
    for node in NODES:
        disturbed.on(node, "sh", "-c", CLEAN)
    return disturbed


def engines(nodes: Nodes, node: str) -> list[Path]:
    return list((nodes.root(node) / "opt/sparkops/engines").glob("*"))


def half(nodes: Nodes, node: str) -> list[Path]:
    """What stands under a final name and is not whole: it has not even been put down what it is."""
    final = [path for path in engines(nodes, node) if ".building-" not in path.name and path.suffix != ".failed"]
    return [path for path in final if not (path / "sparkops.json").exists() or not (path / "bin/vllm").exists()]


@pytest.mark.parametrize("job_too", [False, True], ids=["sparkops", "sparkops and the build"])
def test_a_kill_while_an_engine_is_built(fresh: Nodes, tmp_path: Path, password_file: str, job_too: bool) -> None:
    words = ("provision", "--all-nodes", "--recipe", "bf16", "--become-password-file", password_file)
    run = Started(fresh, tmp_path / "log", *words)
    eventually(lambda: any(".building-" in path.name for path in engines(fresh, "spark-1")), pause=0.005)
    with frozen(fresh):
        if job_too:
            # By now uv waits for the index.
            time.sleep(0.5)
            fresh.on("spark-1", "sh", "-c", KILL_JOBS)
        assert run.kill() == 137
        time.sleep(1)
        # The build stands still: nothing has got its final name.
        assert [path for path in engines(fresh, "spark-1") if ".building-" not in path.name] == []
        assert half(fresh, "spark-2") == []
        for node in NODES:
            no_executor_stays(fresh, node)
    again = fresh.sparkops(*words)
    assert again.count("failed") == {"spark-1": 0, "spark-2": 0}
    for node in NODES:
        assert half(fresh, node) == []
        assert fresh.on(node, "sh", "-c", "/opt/sparkops/engines/vllm-*/bin/vllm --version").strip()
    assert fresh.sparkops(*words).count("changed") == {"spark-1": 0, "spark-2": 0}
    for node in NODES:
        assert fresh.on(node, *LEFTOVERS.split()) == ""


@pytest.mark.timeout(240)
@pytest.mark.parametrize("how", ["kill", "interrupt"])
def test_stopped_at_random_moments(fresh: Nodes, tmp_path: Path, password_file: str, how: str) -> None:
    seed = int(os.environ.get("SPARKOPS_TEST_SEED", random.randrange(10**6)))
    chance = random.Random(seed)
    print(f"SPARKOPS_TEST_SEED={seed}")
    become = ("--become-password-file", password_file)
    verbs = {"provision": ("provision", "--all-nodes", *become), "deploy": ("deploy", "fp8", "--all-nodes", *become)}
    for verb, longest in (("provision", 3.5), ("provision", 3.5), ("deploy", 2.5), ("deploy", 2.5)):
        if verb == "provision":
            for node in NODES:
                fresh.on(node, "sh", "-c", CLEAN)
        delay = chance.uniform(0, longest)
        words = verbs[verb]
        if verb == "deploy":
            # Another release each time, so that there is something to do.
            words = (*words, "-e", json.dumps({"env": {"RUN": f"{how} {delay}"}}))
        run = Started(fresh, tmp_path / "log", *words)
        run.begun()
        time.sleep(delay)
        at = time.monotonic()
        code = run.kill() if how == "kill" else run.interrupt()
        # 0 if it was through just then.
        assert code == (137 if how == "kill" else 130) or (code == 0 and time.monotonic() - at < 1), run.said
        if code != 137:
            last = json.loads(run.said.splitlines()[-1])
            assert (last["event"], last["exit_code"]) == ("recap", code)
        assert "Traceback" not in run.said
        for node in NODES:
            no_executor_stays(fresh, node)
            assert half(fresh, node) == []
        again = fresh.sparkops(*words)
        assert again.count("failed") == {"spark-1": 0, "spark-2": 0}
    assert fresh.sparkops(*verbs["provision"]).count("changed") == {"spark-1": 0, "spark-2": 0}
    assert fresh.sparkops(*words).count("changed") == {"spark-1": 0, "spark-2": 0}
    for node in NODES:
        assert fresh.token(node, MODEL)
        assert fresh.on(node, *LEFTOVERS.split()) == ""
        no_executor_stays(fresh, node)
