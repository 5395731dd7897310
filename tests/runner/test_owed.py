"""Handlers that a run did not come to: the node remembers them for the next."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sparkops.events import HostEnd
from sparkops.node import bundle
from sparkops.playbook import modules
from sparkops.transport.address import Address
from sparkops.transport.local import LocalChannel
from sparkops.transport.session import Session
from tests.runner.conftest import Play

LISTENING = """
- hosts: all
  gather_facts: false
  tasks:
    - {name: t, command: "touch {{ inventory_dir }}/t", args: {creates: "{{ inventory_dir }}/t"}, notify: topic%s}
  handlers:
    - {name: "first {{ inventory_hostname }}", command: "true", listen: topic}
    - {name: second, command: "test -e {{ inventory_dir }}/go", listen: topic}
    - {name: third, command: "true", listen: [topic, second]}
"""


@pytest.mark.parametrize("judged", ["", ", changed_when: it is changed, register: it"])
def test_listeners_that_did_not_run_are_owed(play: Play, tmp_path: Path, judged: str) -> None:
    failed = play(LISTENING % judged)
    assert failed.states() == {"t": "changed", "first one": "changed", "second": "failed"}
    assert json.loads((tmp_path / "state/pending").read_text()) == {"play.yml:all": ["second", "third"]}
    (tmp_path / "go").touch()
    again = play(LISTENING % judged)
    assert again.states() == {"t": again.states()["t"], "second": "changed", "third": "changed"}
    assert not (tmp_path / "state/pending").exists()
    assert list(play(LISTENING % judged).states()) == ["t"]


class Cut(Session):
    """Loses its connection before what is queued has left, as a controller that is killed does."""

    cut: Callable[[dict[str, Any]], bool]

    def send(self, message: dict[str, Any], blob: bytes = b"") -> None:
        if self.cut(message):
            self._unsent = b""
            self.close()
        super().send(message, blob)


def opened(cut: Callable[[dict[str, Any]], bool]) -> Callable[[Address], Session]:
    def connect(address: Address) -> Session:
        names = {name for name in modules.names() if modules.runs_on_node(name)}
        session = Cut(LocalChannel(address.python), bundle.preamble(names), address.name)
        session.cut = cut
        return session

    return connect


@pytest.mark.parametrize(
    "task",
    [
        '{name: t, command: "true", until: true, notify: h}',
        '{name: t, command: "true", delegate_to: two, notify: h}',
        "{name: t, debug: {}, changed_when: true, notify: h}",
    ],
)
@pytest.mark.parametrize("reset", ["", "- meta: reset_connection\n    "])
def test_what_the_controller_says_is_due_is_told_at_once(play: Play, tmp_path: Path, task: str, reset: str) -> None:
    text = f"""
- hosts: one
  gather_facts: false
  tasks:
    - {{name: before, command: "true"}}
    - {task}
    {reset}- {{name: after, command: "true", args: {{chdir: /}}}}
  handlers:
    - {{name: h, command: "true"}}
"""

    def cut(message: dict[str, Any]) -> bool:
        return any(one["args"].get("chdir") for one in message.get("tasks", []))

    ran = play(text, hosts=("one", "two"), connect=opened(cut))
    assert ran.code == 4
    assert json.loads((tmp_path / "state/pending").read_text()) == {"play.yml:one": ["h"]}


def test_a_controllers_task_before_the_first_connection_is_remembered(play: Play, tmp_path: Path) -> None:
    ran = play(
        """
        - hosts: all
          gather_facts: false
          tasks:
            - {name: t, debug: {}, changed_when: true, notify: h}
            - {name: bad, fail: }
          handlers:
            - {name: h, command: "true"}
        """
    )
    assert ran.code == 1
    assert json.loads((tmp_path / "state/pending").read_text()) == {"play.yml:all": ["h"]}


def test_a_reset_connection_is_for_delegates_too(play: Play) -> None:
    ran = play(
        """
        - hosts: one
          gather_facts: false
          tasks:
            - {name: a, command: "true", delegate_to: two}
            - meta: reset_connection
            - {name: b, command: "true", delegate_to: two}
        """,
        hosts=("one", "two"),
    )
    assert [event.msg for event in ran.events if isinstance(event, HostEnd)] == [""]
    assert (ran.code, ran.states(), len(ran.sessions)) == (0, {"a": "changed", "b": "changed"}, 2)
