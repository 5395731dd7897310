"""As whom tasks run, when the inventory's variables say so."""

from __future__ import annotations

from typing import Any

import pytest

from sparkops.node import bundle
from sparkops.transport.address import Address, from_variables
from sparkops.transport.local import LocalChannel
from sparkops.transport.session import Session
from tests.runner.conftest import Play


class Heard(Session):
    """Keeps the user of each task that is sent, and sends an empty window."""

    users: list[str | None]

    def send(self, message: dict[str, Any], blob: bytes = b"") -> None:
        if message.get("tasks"):
            self.users += [task.get("user") for task in message["tasks"]]
            message = {**message, "tasks": []}
        super().send(message, blob)


@pytest.mark.parametrize(
    ("variables", "words", "user"),
    [
        ("ansible_become: true", "", "root"),
        ("ansible_become: 'yes'", ", become: false", "root"),
        ("ansible_become: false", ", become: true", None),
        ('ansible_become: "{{ wanted }}", wanted: true, ansible_become_user: "{{ who }}", who: eve', "", "eve"),
        ("ansible_become_user: eve", ", become: true, become_user: adam", "eve"),
        ("ansible_become_user: eve", "", None),
        ("other: 1", ", become: true, become_user: adam", "adam"),
        # They are those of the host that the task runs on.
        ("ansible_become: true", ", delegate_to: two", None),
        ("ansible_become: true", ", delegate_to: one", "root"),
    ],
)
def test_variables_beat_the_words(play: Play, variables: str, words: str, user: str | None) -> None:
    users: list[str | None] = []

    def connect(address: Address) -> Session:
        session = Heard(LocalChannel(address.python), bundle.preamble({"command"}), address.name)
        session.users = users
        return session

    text = f"- hosts: one\n  gather_facts: false\n  vars: {{{variables}}}\n  tasks:\n"
    play(f'{text}    - {{name: t, command: "true"{words}}}\n', hosts=("one", "two"), connect=connect)
    assert users[:1] == [user]


@pytest.mark.parametrize("word", ["auto", "auto_silent", "auto_legacy", "auto_legacy_silent"])
def test_an_interpreter_that_is_looked_for_is_python3(word: str) -> None:
    assert from_variables("x", {"ansible_python_interpreter": word}).python == "python3"
