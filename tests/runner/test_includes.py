"""Task files that no template chooses are known before the run: what they register."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sparkops.errors import InputError
from sparkops.playbook.files import Files
from tests.runner.conftest import Play

ROUND = """
- {name: look, command: echo one, register: seen}
- {name: again, include_tasks: round.yml, when: seen.stdout == 'two'}
"""


def files() -> Files:
    return Files(lambda _: [], lambda _: {})


def written(folder: Path, included: str) -> Path:
    (folder / "tasks").mkdir(exist_ok=True)
    (folder / "tasks/round.yml").write_text(ROUND)
    path = folder / "play.yml"
    path.write_text(f"- hosts: all\n  tasks:\n    - {{name: x, command: 'true', register: x}}\n{included}")
    return path


def test_a_file_that_includes_itself_ends_and_leaves_the_rest_checked(play: Play, tmp_path: Path) -> None:
    written(tmp_path, "")
    text = """
        - hosts: all
          gather_facts: false
          tasks:
            - {name: x, command: echo x, register: x}
            - {name: more, include_tasks: round.yml, when: x.stdout == 'x'}
            - {name: after, debug: {msg: "{{ seen.stdout }}!"}}
            - {name: last, debug: {msg: "{{ VALUE }}"}}
        """
    with pytest.raises(InputError, match="undefined_name"):
        play(text.replace("VALUE", "undefined_name"))
    ran = play(text.replace("VALUE", "x.stdout"))
    assert ran.states()["again"] == "skipped"
    assert ran.results("after")["msg"] == "one!"


def test_facts_are_there_for_a_play_behind_the_one_that_gathers(play: Play) -> None:
    text = """
        - hosts: all
          tasks: [{name: first, command: 'true'}]
        - hosts: all
          gather_facts: false
          tasks:
            - {name: second, command: 'true'}
            - {name: third, debug: {msg: "{{ ansible_system }}"}}
        """
    ran: Any = play(text, start_at="second")
    assert list(ran.states()) == ["Gathering Facts", "second", "third"]
    assert json.dumps(ran.results("third")["msg"]) == '"Linux"'
