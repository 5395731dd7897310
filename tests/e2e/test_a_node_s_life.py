"""What happens to a node and to its neighbour: a reboot, an old driver, a node that can't be reached."""

from __future__ import annotations

import pytest

from tests.e2e.nodes import MODEL, Nodes, eventually

pytestmark = pytest.mark.lab

DRIVER = "/etc/sparkops-lab/driver"


def test_a_reboot_brings_the_service_back(nodes: Nodes) -> None:
    boot = "/proc/sys/kernel/random/boot_id"
    before = nodes.on("spark-1", "cat", boot)
    nodes.lab("reboot", "spark-1")
    assert nodes.on("spark-1", "cat", boot) != before
    eventually(lambda: nodes.token("spark-1", MODEL))


def test_an_old_driver_fails_that_node_alone(nodes: Nodes, password_file: str) -> None:
    was = nodes.on("spark-1", "cat", DRIVER)
    nodes.on("spark-1", "tee", DRIVER, stdin="570.172.08\n")
    try:
        run = nodes.sparkops("provision", "--all-nodes", "--become-password-file", password_file, rc=1)
        plain = nodes.plain("provision", "--all-nodes", "--become-password-file", password_file)
    finally:
        nodes.on("spark-1", "tee", DRIVER, stdin=was)
    assert run.count("failed") == {"spark-1": 1, "spark-2": 0}
    failed = run.failure("spark-1")
    assert failed["module"] == "nvidia_driver"
    assert "570.172.08" in failed["msg"]
    assert "580" in failed["msg"]
    # It was the first task: nothing after it ran there, and all of it on the other node.
    assert run.recap["spark-1"]["ok"] == 1
    assert run.recap["spark-2"]["ok"] == 8
    assert plain.rc == 1
    assert "570.172.08" in plain.out


def test_a_node_that_is_cut_off_is_unreachable_and_the_other_goes_on(nodes: Nodes, password_file: str) -> None:
    nodes.lab("poweroff", "spark-1")
    try:
        words = ("provision", "--all-nodes", "--become-password-file", password_file, "-e", "ansible_timeout=2")
        run = nodes.sparkops(*words, rc=4)
    finally:
        nodes.lab("mend", "spark-1")
    assert run.count("unreachable") == {"spark-1": 1, "spark-2": 0}
    assert run.count("failed") == {"spark-1": 0, "spark-2": 0}
    assert run.recap["spark-2"]["ok"] == 8
