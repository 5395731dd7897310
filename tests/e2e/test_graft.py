"""A draft grafted on nodes, which fetch it themselves from a hub on one of them, as an ordinary user, through kills."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.interrupting import Started, no_executor_stays
from tests.e2e.leaks import Watch
from tests.e2e.nodes import ROOT, SPARKOPS, STATE, Nodes, eventually, lab
from tests.node.grafting import BODY, WIDE, WIDE_CONFIG, checkpoint, donor, expected, tensors_of

pytestmark = pytest.mark.lab

NODES = ("spark-1", "spark-2")
HOME = "home/spark"
TOKEN = "hf_secretsecretsecret"
PORT = "8900"
HUB = Path(__file__).parents[1] / "checkpoint/standin_hub.py"
JOBS = f"{STATE}/state/jobs"
KILL_JOB = f'for job in {JOBS}/graft-*/pid; do read -r pid _ < "$job"; kill -9 $pid; done'


@pytest.fixture(scope="module")
def grafting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """Two nodes with a target, spark-1 with the donor and the hub's program."""
    with lab(tmp_path_factory.mktemp("graft") / "lab", 2, "nspawn") as nodes:
        for node in NODES:
            checkpoint(nodes.root(node) / HOME / "target", [BODY], WIDE_CONFIG, index=True)
            nodes.on(node, "chown", "-R", "spark:", f"/{HOME}/target")
        donor(nodes.root("spark-1") / HOME / "donor", WIDE)
        (nodes.root("spark-1") / HOME / "hub.py").write_text(HUB.read_text())
        yield nodes


@contextmanager
def hub(nodes: Nodes, log: Path, delay: float) -> Iterator[str]:
    """The hub on spark-1; its address for all nodes."""
    address = nodes.on("spark-1", "hostname", "-I").split()[0]
    words = ("python3", f"/{HOME}/hub.py", f"/{HOME}/donor", PORT, str(delay))
    argv = [*SPARKOPS, "lab", "exec", "--dir", str(nodes.dir), "spark-1", "--", *words]
    with log.open("wb") as out, subprocess.Popen(argv, cwd=ROOT, stdout=out, start_new_session=True) as process:
        try:
            ask = f"import socket; socket.create_connection(('127.0.0.1', {PORT}), 1)"
            eventually(lambda: nodes.lab("exec", "spark-1", "--", "python3", "-c", ask, check=False).rc == 0)
            yield f"http://{address}:{PORT}"
        finally:
            nodes.on("spark-1", "pkill", "-f", "hub.py")
            process.wait(10)


def words(url: str, out: str, token: Path | None = None) -> tuple[str, ...]:
    secret = ("-e", f"@{token}") if token else ()
    where = ("--node", "all", "--endpoint", url)
    return ("checkpoint", "graft-mtp", "~/target", "hf:org/model", f"~/{out}", *where, *secret)


def whole(nodes: Nodes, node: str, out: str) -> bool:
    """Whether it is there; if so it must be right."""
    folder = nodes.root(node) / HOME / out
    if not folder.exists():
        return False
    assert tensors_of(folder / "mtp.safetensors") == expected(WIDE)
    assert (folder / "model-1.safetensors").samefile(nodes.root(node) / HOME / "target/model-1.safetensors")
    assert len(json.loads((folder / "model.safetensors.index.json").read_text())["weight_map"]) == len(BODY) + 19
    assert folder.stat().st_uid == (nodes.root(node) / HOME).stat().st_uid
    return True


def test_every_node_fetches_the_draft_alone(grafting: Nodes, tmp_path: Path) -> None:
    token = tmp_path / "token.yml"
    token.write_text(json.dumps({"hub_token": TOKEN}))
    with hub(grafting, tmp_path / "log", 0.005) as url, Watch(TOKEN) as watch:
        given = words(url, "out", token)
        check = grafting.sparkops(*given, "--check")
        assert check.count("changed") == dict.fromkeys(NODES, 1)
        assert not any((grafting.root(node) / HOME / "out").exists() for node in NODES)
        done = grafting.sparkops(*given)
        assert done.count("changed") == dict.fromkeys(NODES, 1)
        asked = (tmp_path / "log").read_text().splitlines()
        assert grafting.sparkops(*given).count("ok") == dict.fromkeys(NODES, 1)
        assert (tmp_path / "log").read_text().splitlines() == asked
    assert all(whole(grafting, node, "out") for node in NODES)
    assert asked and all(line.endswith(" True") for line in asked)
    assert not any("model-1" in line for line in asked)
    assert (watch.looked > 10, watch.found) == (True, set())
    assert TOKEN not in done.out + done.err
    for node in NODES:
        assert grafting.lab("exec", node, "--", "grep", "-rl", TOKEN, f"/{HOME}", "/tmp", check=False).out == ""


@pytest.mark.parametrize("job_too", [False, True], ids=["sparkops", "sparkops and the job"])
def test_a_kill_while_it_is_fetched(grafting: Nodes, tmp_path: Path, job_too: bool) -> None:
    out = f"out-{job_too}"
    with hub(grafting, tmp_path / "log", 0.2) as url:
        run = Started(grafting, tmp_path / "run", *words(url, out))
        stages = [grafting.root(node) / HOME / f".{out}.graft/state.json" for node in NODES]
        eventually(lambda: all(stage.exists() for stage in stages), pause=0.01)
        if job_too:
            for node in NODES:
                grafting.on(node, "sh", "-c", KILL_JOB)
            # The run sees it, says so, and ends.
            assert run.process.wait(30) == 1
            assert run.said.count("was killed") >= 2
            assert not any(whole(grafting, node, out) for node in NODES)
        else:
            assert run.kill() == 137
            assert not any(whole(grafting, node, out) for node in NODES)
            for node in NODES:
                no_executor_stays(grafting, node)
            # It goes on by itself.
            eventually(lambda: all(whole(grafting, node, out) for node in NODES))
        again = grafting.sparkops(*words(url, out))
    assert again.count("changed") == dict.fromkeys(NODES, int(job_too))
    assert all(whole(grafting, node, out) for node in NODES)
    for node in NODES:
        assert list((grafting.root(node) / HOME).glob(".out*")) == []
        assert list(grafting.root(node).joinpath(JOBS[1:]).iterdir()) == []
