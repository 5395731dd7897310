"""A host's session lasts as long as the host has something to do, and no longer."""

from __future__ import annotations

from typing import Any

from sparkops.node import bundle
from sparkops.playbook import modules
from sparkops.transport.address import Address
from sparkops.transport.local import LocalChannel
from sparkops.transport.session import Session
from tests.runner.conftest import Play

BOOK = """
- hosts: all
  gather_facts: false
  tasks:
    - command: "true"
- hosts: b
  gather_facts: false
  tasks:
    - command: "true"
- hosts: a
  gather_facts: false
  tasks:
    - command: "true"
"""


def test_a_session_ends_with_its_host_s_last_play(play: Play) -> None:
    said: list[str] = []
    names = [name for name in modules.names() if modules.runs_on_node(name)]

    class Noted(LocalChannel):
        def __init__(self, address: Address) -> None:
            self.host, self.over = address.name, False
            said.append(f"open {self.host}")
            super().__init__(address.python)

        def write(self, data: bytes) -> None:
            said.append(f"work {self.host}")
            super().write(data)

        def close(self) -> None:
            if not self.over:
                said.append(f"close {self.host}")
            self.over = True
            super().close()

    def connect(address: Address) -> Any:
        return Session(Noted(address), bundle.preamble(names), address.name)

    ran = play(BOOK, hosts=("a", "b"), connect=connect, forks=1)
    assert ran.code == 0
    # The first play's hosts come in any order.
    assert said[-4:] == ["work b", "close b", "work a", "close a"]
    assert sorted(said[:-4]) == ["open a", "open b", "work a", "work b"]
