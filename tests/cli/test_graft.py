"""`sparkops checkpoint graft-mtp` as a user meets it: here without an inventory, and on nodes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.checkpoint.standin_hub import Server, serving
from tests.node.grafting import BODY, WIDE, WIDE_CONFIG, checkpoint, donor, expected, tensors_of

ROOT = Path(__file__).parents[2]
TOKEN = "hf_secretsecretsecret"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a target and a donor, an inventory whose nodes are this machine, and a home of its own."""
    checkpoint(tmp_path / "target", [BODY], WIDE_CONFIG)
    donor(tmp_path / "donor", WIDE)
    (tmp_path / "home").mkdir()
    node = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    (tmp_path / "hosts.yml").write_text(json.dumps({"all": {"hosts": {"spark-1": node, "spark-2": node}}}))
    return tmp_path


@pytest.fixture
def hub(project: Path) -> Iterator[Server]:
    with serving(project / "donor") as server:
        yield server


def argv(*words: str) -> list[str]:
    return [sys.executable, "-m", "sparkops.cli.main", "checkpoint", "graft-mtp", *words]


def environment(project: Path, **more: str) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "SPARKOPS_"))}
    return {**clean, "HOME": str(project / "home"), "PYTHONPATH": str(ROOT), **more}


def graft(project: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    env = environment(project, **more)
    return subprocess.run(argv(*words), cwd=project, capture_output=True, text=True, timeout=60, env=env)


def recap(ran: subprocess.CompletedProcess[str]) -> dict[str, dict[str, int]]:
    hosts: dict[str, dict[str, int]] = json.loads(ran.stdout.splitlines()[-1])["hosts"]
    return hosts


def test_here_and_without_an_inventory(project: Path) -> None:
    words = ("target", "donor", "out")
    assert graft(project, *words, "--check", "--exit-code").returncode == 3
    assert not (project / "out").exists()
    assert list((project / "home").iterdir()) == []
    ran = graft(project, *words, "--json")
    assert ran.returncode == 0, ran
    (task,) = [event for line in ran.stdout.splitlines() if (event := json.loads(line))["event"] == "task"]
    assert (task["state"], task["module"], task["result"]["tensors"]) == ("changed", "mtp_graft", 19)
    assert tensors_of(project / "out/mtp.safetensors") == expected(WIDE)
    assert recap(graft(project, *words, "--json"))["localhost"]["changed"] == 0
    assert graft(project, *words, "--check", "--exit-code").returncode == 0


def test_on_nodes_from_a_hub(project: Path, hub: Server) -> None:
    place = project.relative_to("/")
    words = (f"/{place}/target", "hf:org/model", "~/out", "--endpoint", hub.url, "-i", "hosts.yml")
    ran = graft(project, *words, "--node", "spark-*", "--limit", "spark-1", "--json", HF_TOKEN=TOKEN)
    assert ran.returncode == 0, ran
    assert recap(ran)["spark-1"]["changed"] == 1
    assert tensors_of(project / "home/out/mtp.safetensors") == expected(WIDE)
    assert {token for *_, token in hub.seen} == {f"Bearer {TOKEN}"}
    assert TOKEN not in ran.stdout + ran.stderr


def test_the_hub_from_the_environment(project: Path, hub: Server) -> None:
    assert graft(project, "target", "hf:org/model", "out", HF_ENDPOINT=hub.url).returncode == 0
    assert tensors_of(project / "out/mtp.safetensors") == expected(WIDE)


def test_hub_and_token_can_be_variables(project: Path, hub: Server) -> None:
    hosts = json.loads((project / "hosts.yml").read_text())
    hosts["all"]["vars"] = {"hub_token": "{{ lookup('env', 'OTHER') }}", "hub_url": hub.url}
    (project / "hosts.yml").write_text(json.dumps(hosts))
    words = (str(project / "target"), "hf:org/model", "~/out", "--node", "spark-1", "-i", "hosts.yml", "-vvv", "--diff")
    ran = graft(project, *words, HF_ENDPOINT="http://127.0.0.1:9", OTHER=TOKEN)
    assert ran.returncode == 0, ran
    assert {token for *_, token in hub.seen} == {f"Bearer {TOKEN}"}
    assert TOKEN not in ran.stdout + ran.stderr


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["gone", "donor", "out"], 1, "gone is no folder with a checkpoint"),
        (["target", "gone", "out"], 1, "there is no donor"),
        (["target", "target", "out"], 1, "has no draft to give"),
        (["target", "donor", "target"], 1, "a graft makes a new folder beside it"),
        (["target", "donor", "home/no/out"], 1, "No such file or directory"),
        (["target", "hf:x", "out"], 2, "names no model on a hub"),
        (["target", "hf:a/b", "out", "--endpoint", "nowhere"], 2, "no address of a hub"),
        (["target", "hf:a/b", "out", "--endpoint", "http://127.0.0.1:9"], 1, "is the hub reachable?"),
        (["target", "donor", "out", "--node", "spark-9", "-i", "hosts.yml"], 2, "spark-9"),
        (["target", "donor"], 2, "Missing argument"),
    ],
)
def test_wrong_input(project: Path, words: list[str], code: int, message: str) -> None:
    ran = graft(project, *words, HF_TOKEN=TOKEN)
    told = ran.stdout + ran.stderr
    assert (ran.returncode, message in " ".join(told.split())) == (code, True), told
    assert "Traceback" not in told
    assert TOKEN not in told
    assert not (project / "out").exists()


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGKILL])
def test_it_goes_on_without_the_controller(project: Path, hub: Server, stop: signal.Signals) -> None:
    hub.delay = 0.15
    words = ("target", "hf:org/model", "out", "--endpoint", hub.url, "--json")
    with subprocess.Popen(
        argv(*words), cwd=project, env=environment(project), stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        waiting = time.monotonic() + 20
        while not (project / ".out.graft/state.json").exists():
            assert time.monotonic() < waiting, "it has not begun"
            time.sleep(0.01)
        os.killpg(process.pid, stop)
        process.wait(20)
    assert not (project / "out").exists()
    again: Any = graft(project, *words)
    assert again.returncode == 0, again
    assert tensors_of(project / "out/mtp.safetensors") == expected(WIDE)
    # What was under way was joined: nothing came twice.
    assert hub.sent < 2 * (project / "out/mtp.safetensors").stat().st_size
