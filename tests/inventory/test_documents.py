from __future__ import annotations

import math

import pytest

from sparkops.errors import InputError, Position
from sparkops.inventory.documents import loads
from sparkops.project.values import Unsafe, position


def test_json_is_json() -> None:
    found = loads('{\n\t"exp": 1e5, "text": "1e5", "nan": [NaN], "deep": {"k": [2E1]}}', "x")
    assert found["exp"] == 100000.0 and found["text"] == "1e5"
    assert math.isnan(found["nan"][0]) and found["deep"]["k"] == [20.0]
    assert position(found, "text") == Position("x", 2, 22)
    assert position(found["deep"], "k") == Position("x", 2, 57)


def test_what_is_yaml_stays_yaml() -> None:
    assert loads("{a: yes, b: 1e5}", "x") == {"a": True, "b": "1e5"}
    assert loads("a: 1", "x") == {"a": 1}
    assert loads("", "x") is None


def test_marks_of_ansible_in_json() -> None:
    found = loads('{"a": {"__ansible_unsafe": "{{ x }}"}}', "x")
    assert found["a"] == "{{ x }}" and isinstance(found["a"], Unsafe)
    with pytest.raises(InputError, match="ansible-vault"):
        loads('{"a": {"__ansible_vault": "1"}}', "x")


@pytest.mark.parametrize("text", ['{"a": ', "[" * 100_000, '{"a": 1} x'])
def test_what_is_neither(text: str) -> None:
    with pytest.raises(InputError):
        loads(text, "x")
