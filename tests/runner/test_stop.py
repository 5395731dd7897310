"""Ctrl-C: whatever a host is at, nothing more is sent, and the run ends soon."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from sparkops.node import bundle
from sparkops.playbook import modules
from sparkops.runner.prompt import Prompt
from sparkops.transport.address import Address
from sparkops.transport.local import LocalChannel
from sparkops.transport.session import Session
from tests.runner.conftest import Play


def interrupt(after: float) -> None:
    timer = threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT))
    timer.daemon = True
    timer.start()


class Noted(LocalChannel):
    closed = False

    def close(self) -> None:
        self.closed = True
        super().close()


@pytest.mark.parametrize("delegated", [False, True])
def test_a_host_that_is_still_connecting_runs_nothing_and_hangs_up(play: Play, tmp_path: Path, delegated: bool) -> None:
    made: list[Noted] = []

    def slow(address: Address) -> Session:
        # Not before the main thread waits.
        interrupt(0.3)
        time.sleep(1)
        made.append(Noted(address.python))
        names = {name for name in modules.names() if modules.runs_on_node(name)}
        return Session(made[-1], bundle.preamble(names), address.name)

    ran = play(
        f"""
        - hosts: one
          gather_facts: false
          tasks:
            - {{name: t, command: "touch {{{{ inventory_dir }}}}/ran"{", delegate_to: two" if delegated else ""}}}
        """,
        hosts=("one", "two"),
        connect=slow,
    )
    assert ran.code == 130
    assert [channel.closed for channel in made] == [True]
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "task",
    [
        "{name: t, pause: {seconds: 30}}",
        '{name: t, command: "false", until: false, retries: 3, delay: 30}',
        '{name: t, command: "true", loop: [1, 2], loop_control: {pause: 30}}',
    ],
)
def test_nobody_waits_out_a_pause(play: Play, task: str) -> None:
    started = time.monotonic()
    interrupt(1)
    ran = play(f"- hosts: all\n  gather_facts: false\n  tasks:\n    - {task}\n")
    assert ran.code == 130
    assert time.monotonic() - started < 10


def test_a_question_does_not_keep_a_run_from_ending(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading) as stdin, os.fdopen(writing, "w"):
        monkeypatch.setattr("sys.stdin", stdin)
        started = time.monotonic()
        interrupt(0.5)
        ran = play("- hosts: all\n  gather_facts: false\n  tasks:\n    - command: 'true'\n", step=True)
    assert ran.code == 130
    assert time.monotonic() - started < 10


def test_answers_are_lines_and_the_end_is_no_answer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"first\nsecond\nno newline")
    os.close(writing)
    with os.fdopen(reading) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        prompt = Prompt(threading.Event())
        assert [prompt.ask("? ") for _ in range(4)] == ["first", "second", "no newline", ""]
    assert capsys.readouterr() == ("", "? ? ? ? ")


def answer(monkeypatch: pytest.MonkeyPatch, text: bytes, file: Path) -> None:
    file.write_bytes(text)
    monkeypatch.setattr("sys.stdin", file.open())


def test_no_to_a_task_that_one_does_for_all_lets_the_others_go_on(
    play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(monkeypatch, b"n\nc\n", tmp_path / "answers")
    ran = play(
        """
        - hosts: all
          gather_facts: false
          tasks:
            - {name: once, command: "true", run_once: true}
            - {name: each, command: "true"}
        """,
        hosts=("a", "b"),
        step=True,
        forks=1,
    )
    assert (ran.code, ran.states("a"), ran.states("b")) == (0, {"each": "changed"}, {"each": "changed"})
