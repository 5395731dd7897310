from __future__ import annotations

import pytest

from sparkops.serving.differences import Difference, Side, differences


@pytest.mark.parametrize(
    ("nodes", "wanted"),
    [
        ({}, []),
        ({"a": {"driver": "580"}}, []),
        ({"a": {"driver": "580", "OS": None}, "b": {"driver": "580", "OS": None}}, []),
        (
            {"a": {"driver": "580"}, "b": {"driver": "590"}, "c": {"driver": "590"}},
            [Difference("driver", [Side("590", ["b", "c"]), Side("580", ["a"])])],
        ),
        ({"a": {"x": "1"}, "b": {}}, [Difference("x", [Side("1", ["a"]), Side(None, ["b"])])]),
        (
            {"a": {"env K": "(hidden 0f)"}, "b": {"env K": "(hidden 1e)"}, "c": {}},
            [Difference("env K", [Side("(hidden A)", ["a"]), Side("(hidden B)", ["b"]), Side(None, ["c"])])],
        ),
    ],
)
def test_differences(nodes: dict[str, dict[str, str | None]], wanted: list[Difference]) -> None:
    assert differences(nodes) == wanted
