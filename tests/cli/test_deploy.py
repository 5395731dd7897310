"""`deploy`'s own options: sizes of batches, and how many nodes may fail."""

from __future__ import annotations

import click
import pytest

from sparkops.cli.deploy import CANARY, deploy
from sparkops.runner.batch import Budget


def parse(*words: str) -> dict[str, object]:
    return deploy.make_context("deploy", ["fp8", "all", *words]).params


@pytest.mark.parametrize(
    ("text", "sizes"), [("2", ["2"]), ("1,50%", ["1", "50%"]), (" 1 , 2 ,100% ", ["1", "2", "100%"]), ("007", ["007"])]
)
def test_serial(text: str, sizes: list[str]) -> None:
    assert parse("--serial", text)["serial"] == sizes
    assert parse()["serial"] == CANARY


@pytest.mark.parametrize(
    "text", ["0", "abc", "150%", "-1", "", "1,", "1,,2", "0%", "1.5", "50 %", "1;2", "9" * 5000, "٣"]
)
def test_no_serial(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is no size of a batch: a number of nodes from 1") as caught:
        parse(f"--serial={text}")
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    ("text", "budget"), [("0", Budget(0)), ("2", Budget(2)), ("0%", Budget(0, True)), ("100%", Budget(100, True))]
)
def test_max_fail(text: str, budget: Budget) -> None:
    assert parse("--max-fail", text)["max_fail"] == budget
    assert parse()["max_fail"] is None


@pytest.mark.parametrize("text", ["abc", "150%", "-1", "", "1.5", "%", "1,2"])
def test_no_max_fail(text: str) -> None:
    with pytest.raises(click.BadParameter, match="neither a number of nodes nor a percentage up to 100%"):
        parse(f"--max-fail={text}")
