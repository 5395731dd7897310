"""Batches' sizes, and how many hosts may fail before no more are begun."""

from __future__ import annotations

from typing import Any

import pytest

from sparkops.errors import InputError, Position
from sparkops.runner.batch import Budget, batches

WHERE = Position("f.yml", 1, 1)


@pytest.mark.parametrize(
    ("count", "serial", "sizes"),
    [
        (4, [], [4]),
        (4, [1], [1, 1, 1, 1]),
        (4, ["3"], [3, 1]),
        (4, [9], [4]),
        (4, [0], [4]),
        (4, ["1", "100%"], [1, 3]),
        (1, ["1", "100%"], [1]),
        (10, ["50%"], [5, 5]),
        (10, ["33%"], [3, 3, 3, 1]),
        (3, ["1%"], [1, 1, 1]),
        (10, [1, 2, "30%"], [1, 2, 3, 3, 1]),
        (0, ["50%"], []),
    ],
)
def test_sizes(count: int, serial: list[Any], sizes: list[int]) -> None:
    hosts = [f"h{number}" for number in range(count)]
    found = batches(hosts, serial, WHERE)
    assert [len(batch) for batch in found] == sizes
    assert [host for batch in found for host in batch] == hosts


@pytest.mark.parametrize("value", ["abc", "", "%", "1.5", None, [1]])
def test_no_sizes(value: Any) -> None:
    with pytest.raises(InputError, match="serial is a number or a percentage"):
        batches(["a"], [value], WHERE)


@pytest.mark.parametrize(
    ("budget", "failed", "in_batch", "size", "spent"),
    [
        (Budget(0), 0, 0, 4, False),
        (Budget(0), 1, 1, 4, True),
        # The number counts through all batches, the share within one, and it must be exceeded.
        (Budget(2), 2, 1, 4, False),
        (Budget(2), 3, 1, 4, True),
        (Budget(25, percent=True), 3, 1, 4, False),
        (Budget(25, percent=True), 2, 2, 4, True),
        (Budget(0, percent=True), 1, 1, 100, True),
        (Budget(100, percent=True), 4, 4, 4, False),
    ],
)
def test_a_budget_is_spent_by_more(budget: Budget, failed: int, in_batch: int, size: int, spent: bool) -> None:
    assert budget.spent(failed, in_batch, size) is spent
