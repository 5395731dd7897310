"""What a module's `warnings` become."""

from __future__ import annotations

from typing import Any

import pytest

from sparkops.events import Notice, Task
from sparkops.runner.results import warnings


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ({}, []),
        ({"warnings": []}, []),
        ({"warnings": ["a", "b", "a"]}, ["a", "b"]),
        ({"results": [{"warnings": ["a"]}, {"warnings": ["a", "c"]}, {}]}, ["a", "c"]),
        # What debug shows of a variable.
        ({"warnings": "text", "results": "text"}, []),
        ({"warnings": 3, "results": ["text", None]}, []),
    ],
)
def test_each_warning_is_told_once(result: dict[str, Any], said: list[str]) -> None:
    event = Task("spark-1", "p", "t", "f.yml:1:1", "log_expect", "ok", False, 0.0, result=result)
    assert warnings(event) == [Notice(text, "spark-1") for text in said]
