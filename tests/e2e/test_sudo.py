"""A sudo password that is wrong or missing: said clearly, and the node that needs none goes on."""

from __future__ import annotations

import pytest

from tests.e2e.nodes import Done, Nodes

pytestmark = pytest.mark.lab

WRONG = "not the password 8"


def assert_only_spark_2_failed(run: Done, *words: str) -> None:
    assert run.count("failed") == {"spark-1": 0, "spark-2": 1}
    assert run.recap["spark-1"]["ok"] == 8
    failed = run.failure("spark-2")
    assert failed["module"] == "package"
    assert all(word in failed["msg"] for word in ("sudo", "password", "-K", *words)), failed["msg"]
    assert "Traceback" not in run.out + run.err


def test_a_wrong_password(nodes: Nodes) -> None:
    run = nodes.sparkops("provision", "--all-nodes", "-K", stdin=WRONG + "\n", rc=1)
    assert_only_spark_2_failed(run, "did not accept")
    assert WRONG not in run.out + run.err


def test_no_password(nodes: Nodes) -> None:
    assert_only_spark_2_failed(nodes.sparkops("provision", "--all-nodes", rc=1), "asks for a password")


def test_a_password_prompt_with_nothing_to_read(nodes: Nodes) -> None:
    run = nodes.sparkops("provision", "--all-nodes", "-K", rc=2)
    assert "stdin" in run.err
    assert run.recap == {}
