"""provision, deploy and purge-cache as user spark with sudo, on one node with a password; then all of it again."""

from __future__ import annotations

import os
import subprocess
import time

import pytest

from tests.e2e.leaks import Watch
from tests.e2e.listing import differences, listing
from tests.e2e.nodes import MODEL, VERBS, First, Nodes, eventually

pytestmark = pytest.mark.lab

NODES = ("spark-1", "spark-2")


def test_the_first_run_changes_both_nodes_and_they_serve(nodes: Nodes, first: First) -> None:
    for run in first.runs:
        assert run.count("failed") == {"spark-1": 0, "spark-2": 0}
        # The nodes of a lab share the checkpoints' files: what one has purged the other need not purge.
        changed = run.count("changed").values()
        assert any(changed) if run is first.runs[-1] else all(changed)
    assert all(nodes.token(node, MODEL) for node in NODES)
    user = nodes.on("spark-1", "systemctl", "show", "-P", "User", "sparkops-vllm")
    assert user.strip() == "spark"


def test_the_second_run_changes_nothing(nodes: Nodes, password_file: str) -> None:
    def changed(*verb: str) -> list[str]:
        run = nodes.sparkops(*verb, "--become-password-file", password_file)
        return [f"{task['host']}: {task['task']}: {task['msg']}" for task in run.tasks() if task["state"] == "changed"]

    *others, purge = VERBS
    before = {node: listing(nodes, node) for node in NODES}
    for verb in others:
        assert changed(*verb) == []
    # All labs of a machine share the models' files, and another one may have them read at any moment.
    eventually(lambda: changed(*purge) == [])
    for node in NODES:
        assert differences(before[node], listing(nodes, node)) == {}


def test_the_watch_sees_arguments_and_environments(password: str) -> None:
    with Watch(password) as watch, subprocess.Popen(["sleep", "5"], env={**os.environ, "X": password}) as one:
        with subprocess.Popen(["sh", "-c", "sleep 5; :", password]) as two:
            eventually(lambda: len(watch.found) >= 2)
            two.kill()
        one.kill()


def test_no_process_ever_had_the_password(nodes: Nodes, first: First, password: str, password_file: str) -> None:
    assert first.watch.looked > 20
    assert not first.watch.found
    with Watch(password) as watch:
        # To its end a run of its own, with sudo at work.
        nodes.sparkops("provision", "--all-nodes", "--become-password-file", password_file)
        time.sleep(0.1)
    assert not watch.found


def test_the_password_is_in_no_file_and_no_output(nodes: Nodes, first: First, password: str) -> None:
    for run in first.runs:
        assert password not in run.out + run.err
    search = ("grep", "-rlaF", "-e", password)
    # Both nodes' own layers and the lab's logs; lab.json is where a lab keeps the passwords that it gave out.
    skipped = ("--exclude=lab.json", "--exclude=net", "--exclude-dir=root")
    here = subprocess.run([*search, *skipped, str(nodes.dir)], capture_output=True)
    assert (here.returncode, here.stdout) == (1, b""), here
    for node in NODES:
        there = nodes.lab("exec", node, "--", *search, "/run", "/tmp", "/dev/shm", check=False)
        assert there.out == ""
        assert password not in nodes.on(node, "journalctl", "--no-pager", "-o", "verbose", "--all")
