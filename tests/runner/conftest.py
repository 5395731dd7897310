"""Runs playbooks on this machine through the local transport: the real executor, no SSH."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import pytest

from sparkops.errors import InputErrors, SparkopsError
from sparkops.events import Event, Handler, HostEnd, Recap, Task
from sparkops.inventory.inventory import load
from sparkops.node import bundle
from sparkops.playbook import modules
from sparkops.playbook.files import Files
from sparkops.playbook.parse import playbook
from sparkops.runner.options import Options
from sparkops.runner.run import Run, Target
from sparkops.transport.address import Address
from sparkops.transport.local import LocalChannel
from sparkops.transport.session import Session

HEAD = "- hosts: all\n  gather_facts: false\n  tasks:\n"


@dataclass
class Ran:
    """A run's events and exit code; `sessions` are those that it opened, `begun` what it was about to connect to."""

    code: int
    events: list[Event]
    sessions: list[Session] = field(default_factory=list)
    begun: list[Address] = field(default_factory=list)

    def states(self, host: str = "one") -> dict[str, str]:
        """Task name -> state, handlers too."""
        return {
            event.task: event.state
            for event in self.events
            if isinstance(event, (Task, Handler)) and event.host == host
        }

    def results(self, name: str) -> dict[str, Any]:
        """A task's result."""
        return next(event.result for event in self.events if isinstance(event, Task) and event.task == name)

    def tasks(self, name: str | None = None) -> list[Task]:
        """The tasks (no handlers) that ended, or those of one name, of all hosts in the order in which they did."""
        found = [event for event in self.events if isinstance(event, Task)]
        return [event for event in found if name is None or event.task == name]

    def recap(self, host: str = "one") -> dict[str, int]:
        """The counts of a host."""
        last = self.events[-1]
        assert isinstance(last, Recap)
        return last.hosts[host]


Play = Callable[..., Ran]


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """play(yaml_text, hosts=("one",), check=False, **options) runs it, with its state in tmp_path/state."""

    def run(text: str, hosts: tuple[str, ...] = ("one",), connect: Any = None, **options: Any) -> Ran:
        inventory = tmp_path / "hosts.yml"
        lines = "".join(
            f"    {host}: {{ansible_connection: local, ansible_python_interpreter: {sys.executable}}}\n"
            for host in hosts
        )
        inventory.write_text(f"all:\n  hosts:\n{lines}")
        path = tmp_path / "play.yml"
        path.write_text(dedent(text))
        ran = Ran(0, [])

        def local(address: Address) -> Session:
            session = Session(LocalChannel(address.python), bundle.preamble(bundle_names()), address.name)
            ran.sessions.append(session)
            return session

        plays = playbook(path)

        def bundle_names() -> set[str]:
            return {name for name in modules.names() if modules.runs_on_node(name)}

        options.setdefault("state_dir", str(tmp_path / "state"))
        # Several hosts here are one machine, which has one lease.
        options.setdefault("lease", len(hosts) == 1)
        files = Files(lambda _: [], _no_patch)
        found = load([str(inventory)])
        begin = ran.begun.extend
        opens = connect or local
        prepared = Run(plays, Target(found), Options(**options), ran.events.append, files, opens, [tmp_path], begin)
        try:
            prepared.check()
        except InputErrors as several:
            raise several.errors[0] if len(several.errors) == 1 else several from None
        ran.code = prepared.execute()
        return ran

    return run


def _no_patch(name: str) -> dict[str, Any]:
    raise SparkopsError(f"no patch {name}")


def tasks(text: str) -> str:
    """A play with these tasks."""
    return HEAD + indent(dedent(text), "    ")


def ending(ran: Ran) -> HostEnd:
    """How the one host ended."""
    return next(event for event in ran.events if isinstance(event, HostEnd))
