"""Whose connection is begun before anything runs: hosts whose first task is one of the node's, whatever comes."""

from __future__ import annotations

import pytest

from tests.runner.conftest import HEAD, Play, tasks

GATHERS = HEAD.replace("gather_facts: false", "gather_facts: true")


@pytest.mark.parametrize(
    ("text", "begun"),
    [
        (tasks("- command: {argv: ['true']}"), ["one"]),
        (tasks("- debug: {msg: hi}"), []),
        (tasks("- debug: {msg: hi}\n- command: {argv: ['true']}"), []),
        (tasks("- command: {argv: ['true']}\n  when: false"), []),
        (tasks("- command: {argv: ['true']}\n  when: ansible_distribution == 'x'\n- command: {argv: ['true']}"), []),
        (tasks("- command: {argv: ['true']}\n  delegate_to: other"), []),
        (tasks("- command: {argv: ['true']}\n  loop: []"), []),
        (GATHERS + "    - debug: {msg: hi}\n", ["one"]),
    ],
)
def test_whose_connection_is_begun(play: Play, text: str, begun: list[str]) -> None:
    assert [address.name for address in play(text).begun] == begun


def test_no_more_than_are_worked_on_at_a_time(play: Play) -> None:
    ran = play(tasks("- command: {argv: ['true']}"), hosts=("one", "two", "three"), forks=2)
    assert [address.name for address in ran.begun] == ["one", "two"]
