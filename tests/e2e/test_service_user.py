"""A service that runs as a user of its own: its files, its trials, and what is said when that can't be."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.interrupting import Started
from tests.e2e.nodes import MODEL, STATE, Nodes, eventually, lab

pytestmark = [pytest.mark.lab, pytest.mark.timeout(600)]
FOLDER = "/opt/sparkops/releases/vllm"
UNIT = "sparkops-vllm.service"
# Too small a pool for the context: the engine does not start.
BAD = "name: bad\nextends: fp8\nkv_cache_memory_bytes: 4294967296\n"
SPEEDS = f"{STATE}/state/bench"
OTHER = "name: other\nextends: fp8\nserved_model_name: other\nexpect: {ready_within: 5}\n"
KEY = "s3cret-key"
LOGIN = ("spark-1", "-e", "models_dir=/srv/models", "-e", f"api_key={KEY}")
OWN = (*LOGIN, "-e", "service_user=vllm")


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """A node whose login user's home is closed to others, as on Ubuntu, and which serves as that user."""
    with lab(tmp_path_factory.mktemp("account") / "lab", 1) as nodes:
        (nodes.dir / "recipes").mkdir(exist_ok=True)
        (nodes.dir / "recipes/bad.yml").write_text(BAD)
        (nodes.dir / "recipes/other.yml").write_text(OTHER)
        nodes.on("spark-1", "chmod", "0750", "/home/spark")
        nodes.sparkops("provision", "spark-1", "--recipe", "fp8")
        nodes.on("spark-1", "cp", "-a", "/home/spark/models/hf", "/srv/models")
        nodes.sparkops("deploy", "fp8", *LOGIN)
        yield nodes


def owners(nodes: Nodes) -> set[str]:
    return set(nodes.on("spark-1", "find", FOLDER, "-printf", "%u\n").split())


def serves_as(nodes: Nodes) -> str:
    return nodes.on("spark-1", "sh", "-c", f"ps -o user= -p $(systemctl show -P MainPID {UNIT})").strip()


def model(nodes: Nodes) -> str:
    return nodes.on("spark-1", "sed", "-n", 's/.*"model": "\\(.*\\)".*/\\1/p', f"{FOLDER}/current/serve.json").strip()


def test_a_user_that_is_not_there(one: Nodes) -> None:
    done = one.sparkops("deploy", "fp8", *OWN, rc=1)
    assert "there is no user vllm on this node; make one (sudo useradd" in done.failure("spark-1")["msg"]
    wrong = one.sparkops("deploy", "fp8", *OWN, "-e", "systemd_scope=user", rc=1)
    assert "service_user: vllm needs systemd_scope: system" in wrong.failure("spark-1")["msg"]
    one.on("spark-1", "useradd", "--system", "--home-dir", "/var/lib/vllm", "vllm")
    homeless = one.sparkops("deploy", "fp8", *OWN, rc=1)
    assert "vllm has no home of its own for its caches: /var/lib/vllm" in homeless.failure("spark-1")["msg"]
    assert serves_as(one) == "spark"


def test_models_that_it_may_not_read(one: Nodes) -> None:
    one.on("spark-1", "install", "-d", "-o", "vllm", "/var/lib/vllm")
    done = one.sparkops("deploy", "fp8", "spark-1", "-e", "service_user=vllm", rc=1)
    message = done.failure("spark-1")["msg"]
    assert "/home/spark/models/hf" in message, message
    assert "ermission denied" in message, message


def test_a_deploy_that_would_take_over_and_fails_hands_back(one: Nodes) -> None:
    before = one.on("spark-1", "cat", f"/etc/systemd/system/{UNIT}")
    done = one.sparkops("deploy", "bad", *OWN, rc=1)
    assert "serves again" in done.failure("spark-1")["msg"]
    assert (owners(one), serves_as(one), model(one)) == ({"spark"}, "spark", MODEL)
    assert one.on("spark-1", "cat", f"/etc/systemd/system/{UNIT}") == before
    assert one.sparkops("deploy", "fp8", *LOGIN).count("changed") == {"spark-1": 0}


def test_it_takes_over_and_hands_back(one: Nodes) -> None:
    assert owners(one) == {"spark"}
    check = one.sparkops("deploy", "fp8", *OWN, "--check")
    predicted = {task["task"] for task in check.tasks() if task["state"] in ("changed", "unknown")}
    assert owners(one) == {"spark"}
    done = one.sparkops("deploy", "fp8", *OWN)
    assert {task["task"] for task in done.tasks() if task["state"] == "changed"} <= predicted
    assert (owners(one), serves_as(one)) == ({"vllm"}, "vllm")
    assert one.on("spark-1", "stat", "-c", "%a %U", f"{FOLDER}/current/env").split() == ["600", "vllm"]
    assert one.sparkops("deploy", "fp8", *OWN).count("changed") == {"spark-1": 0}
    one.sparkops("restart", *OWN)
    assert "active" in one.plain("status", "spark-1").out
    one.sparkops("deploy", "other", *OWN)
    one.sparkops("rollback", *OWN)
    assert (owners(one), serves_as(one), model(one)) == ({"vllm"}, "vllm", MODEL)
    assert one.sparkops("deploy", "fp8", *LOGIN, "--check").count("changed")["spark-1"] > 0
    one.sparkops("deploy", "fp8", *LOGIN)
    assert (owners(one), serves_as(one)) == ({"spark"}, "spark")


def test_a_unit_that_the_service_has_written_is_not_installed(one: Nodes) -> None:
    one.sparkops("deploy", "fp8", *OWN)
    one.sparkops("deploy", "other", *OWN)
    before = one.on("spark-1", "cat", f"/etc/systemd/system/{UNIT}")
    evil = f"for one in {FOLDER}/*/unit; do echo '[Service]\nUser=vllm\nExecStart=+/bin/id' > $one; done"
    one.on("spark-1", "runuser", "-u", "vllm", "--", "sh", "-c", evil)
    done = one.sparkops("rollback", *OWN)
    assert f"warning: spark-1: {UNIT} stays as it is" in done.err
    assert (serves_as(one), model(one)) == ("vllm", MODEL)
    assert one.on("spark-1", "cat", f"/etc/systemd/system/{UNIT}") == before
    one.sparkops("deploy", "fp8", *LOGIN)


def test_its_trial_ends_without_the_controller(one: Nodes, tmp_path: Path) -> None:
    one.sparkops("deploy", "fp8", *OWN)
    goal = one.on("spark-1", "readlink", f"{FOLDER}/current")
    running = Started(one, tmp_path / "log", "deploy", "other", *OWN, "-e", "trial_margin=3")
    eventually(lambda: one.on("spark-1", "readlink", f"{FOLDER}/current") != goal, 60)
    one.lab("cut", "spark-1")
    running.kill()
    eventually(lambda: one.on("spark-1", "readlink", f"{FOLDER}/current") == goal, 90, 0.5)
    # The watchdog may end the process of the service's user, which starts on the release before.
    args = f"ps -o args= -p $(systemctl show -P MainPID {UNIT}) || true"
    eventually(lambda: f"--served-model-name {MODEL}" in one.on("spark-1", "sh", "-c", args), 30, 0.5)
    one.lab("mend", "spark-1")
    assert model(one) == MODEL
    one.sparkops("deploy", "fp8", *OWN)
    assert serves_as(one) == "vllm"


def test_a_deploy_that_would_hand_back_and_fails_takes_over_again(one: Nodes) -> None:
    one.sparkops("deploy", "bad", *LOGIN, rc=1)
    assert (owners(one), serves_as(one), model(one)) == ({"vllm"}, "vllm", MODEL)


def test_the_verbs_that_look_read_what_is_another_s(one: Nodes) -> None:
    def drift(*words: str) -> Any:
        return json.loads(one.plain("--json", "status", *words).out)["spark-1"]["services"][0]["drift"]

    assert (drift(*OWN), drift(*LOGIN)) == ([], None)
    for verb, said in (("verify", "pass"), ("diff", "no differences"), ("releases", "confirmed"), ("doctor", "")):
        done = one.plain(verb, *OWN)
        assert (done.rc, said in done.out) == (0, True), done
    # With the key that only it and root may read; what root has measured is the login user's all the same.
    assert one.plain("bench", *OWN, "--tokens", "20").rc == 0
    assert one.on("spark-1", "stat", "-c", "%a %U", f"{SPEEDS}/vllm.json", SPEEDS) == "600 spark\n700 spark\n"
    one.on("spark-1", "sh", "-c", f"cp -a {FOLDER}/current/env /root/; echo A=1 >> {FOLDER}/current/env")
    assert drift(*OWN) == ["env"]
    done = one.plain("verify", *OWN)
    assert (done.rc, "edited: env" in done.out) == (1, True), done
    one.on("spark-1", "cp", "-a", "/root/env", f"{FOLDER}/current/env")


def test_remove_takes_its_files_too(one: Nodes) -> None:
    one.sparkops("remove", *OWN, "--engines")
    assert "vllm" not in one.on("spark-1", "ls", "/opt/sparkops/releases")
    assert "vllm" not in one.on("spark-1", "ls", SPEEDS)
