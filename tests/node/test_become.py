"""Another user's executor: what a sudo that refuses is told as, and a controller that falls silent."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sparkops.node import bundle
from sparkops.node.become import Children
from sparkops.node.frames import Closed, Link, Parser, pack

TASK = {"module": "command", "args": {"cmd": "true"}, "user": "root"}
OPEN = 'while [ "$1" != -- ]; do shift; done; shift; exec "$@"\n'
ASK = "printf %s '[sparkops-password]' >&2; read -r given || exit 1\n"
NOT_IN_SUDOERS = "echo 'bob is not in the sudoers file.' >&2; exit 1\n"
NOT_ALLOWED = "echo 'Sorry, user bob is not allowed to execute this as root on spark.' >&2; exit 1\n"
NO_TTY = "echo 'sudo: sorry, you must have a tty to run sudo' >&2; exit 1\n"
WRONG = ASK + "echo 'Sorry, try again.' >&2; " + ASK + "exit 1\n"
WRONG_ONCE = ASK + "echo 'sudo: 1 incorrect password attempt' >&2; exit 1\n"
# Its stdout ends well before its words do.
SLOW = "exec >&-; sleep 0.1; printf 'sudo: the account ' >&2; sleep 0.1; echo 'has expired' >&2; exit 1\n"


class Wire:
    """Children whose controller is this test: `said` takes what it is told."""

    def __init__(self, folder: Path, password: str | None) -> None:
        source, self.feed = os.pipe()
        self.told, sink = os.pipe()
        self.link = Link(source, sink)
        self.ends = [source, self.feed, self.told, sink]
        self.children = Children(
            self.link, bundle.preamble({"command", "copy"}), password, str(folder), str(folder), False
        )


@pytest.fixture
def sudo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Wire]]:
    """sudo(script, password): with that sudo on PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    made: list[Wire] = []

    def make(script: str, password: str | None = None) -> Wire:
        (folder / "sudo").write_text("#!/bin/sh\n" + script)
        (folder / "sudo").chmod(0o755)
        made.append(Wire(tmp_path / "state", password))
        return made[-1]

    yield make
    for wire in made:
        for fd in wire.ends:
            os.close(fd)
        for process in wire.children._processes:
            assert process.stdin
            process.stdin.close()
            process.wait(10)


@pytest.mark.parametrize(
    ("script", "password", "words"),
    [
        (NOT_IN_SUDOERS, None, "bob is not in the sudoers file."),
        (NO_TTY, None, "you must have a tty"),
        (SLOW, None, "sudo: the account has expired"),
        (ASK + "exit 1\n", None, "give one with -K"),
        (ASK + NOT_IN_SUDOERS, "right", "bob is not in the sudoers file."),
        (ASK + NOT_ALLOWED, "right", "bob is not allowed to execute"),
        (WRONG, "wrong", "did not accept the password"),
        (WRONG_ONCE, "wrong", "did not accept the password"),
        ("exit 1\n", "any", "did not answer"),
    ],
)
def test_why_sudo_refused(sudo: Callable[..., Wire], script: str, password: str | None, words: str) -> None:
    told = set()
    for _ in range(10):
        answer = sudo(script, password).children.run(TASK, 0)
        assert answer["state"] == "failed"
        told.add(answer["msg"])
    assert len(told) == 1, told
    assert words in told.pop()


def test_a_hint_at_a_password_only_where_one_was_missing(sudo: Callable[..., Wire]) -> None:
    assert "-K" not in sudo(ASK + NOT_ALLOWED, "right").children.run(TASK, 0)["msg"]
    assert "-K" not in sudo(NOT_IN_SUDOERS).children.run(TASK, 0)["msg"]


def test_a_silent_controller_ends_the_wait_for_a_hanging_task(sudo: Callable[..., Wire]) -> None:
    wire = sudo(OPEN)
    assert wire.children.run(TASK, 0)["state"] == "changed"
    wire.link.silence = 0.5
    os.write(wire.feed, pack({"op": "ping"}))
    ended: list[float] = []

    def wait() -> None:
        try:
            wire.children.run({**TASK, "args": {"cmd": "sleep 20"}}, 0)
        except Closed:
            ended.append(time.monotonic())

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    waiting.join(5)
    assert ended, "it still waits for the task of a controller that is gone"


def test_the_pieces_for_an_executor_that_died_do_not_stay_for_the_next(sudo: Callable[..., Wire]) -> None:
    wire = sudo(OPEN)
    gone = Link(*os.pipe())
    dead, end = os.pipe()
    os.close(dead)
    gone.sink = end
    for blob in (b"a" * 100, b"b" * 100):
        os.write(wire.feed, pack({"op": "piece"}, blob))
    os.write(wire.feed, pack({"op": "close"}))
    with pytest.raises(Exception, match="ended early"):
        wire.children._relay_pieces(gone, 200)
    assert wire.link.receive()[0] == {"op": "close"}
    os.close(end)


def test_a_relay_reads_exactly_one_file(sudo: Callable[..., Wire]) -> None:
    wire = sudo(OPEN)
    source, sink = os.pipe()
    child = Link(source, sink)
    os.write(wire.feed, pack({"op": "forget"}) + pack({"op": "piece"}, b"a" * 60) + pack({"op": "piece"}))
    wire.children._relay_pieces(child, 100)
    parser = Parser()
    parser.feed(os.read(source, 65536))
    assert [parser.next(), parser.next()] == [({"op": "piece", "blob": 60}, b"a" * 60), ({"op": "piece"}, b"")]
    assert wire.link.receive()[0] == {"op": "forget"}, "what came between waits for its turn"
    os.close(source)
    os.close(sink)
