from __future__ import annotations

import io
import os
import time

import pytest

from sparkops.events import HostEnd, Notice, Output
from sparkops.reporters.follow import FollowReporter, Painter

EARLY, LATE = "2026-11-30T12:00:01.0+0000 early", "2026-11-30T12:00:02.0+0000 late\x1b[2J"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_lines_and_who_has_gone() -> None:
    out, errors = io.StringIO(), io.StringIO()
    with FollowReporter(out, ["one", "three"], errors) as reporter:
        reporter(Output("three", "Read", [LATE]))
        reporter(Output("one", "Read", [EARLY]))
        reporter(HostEnd("one", "Logs", "unreachable", 1.0, "the connection broke"))
        reporter(HostEnd("three", "Logs", "failed", 1.0, "interrupted"))
        reporter(Notice("nothing matches 'x'"))
    assert [line.split()[0] for line in out.getvalue().splitlines()] == ["one", "three"]
    assert out.getvalue().splitlines()[0] == f"one    {EARLY}"
    assert "\x1b" not in out.getvalue()
    assert errors.getvalue().splitlines()[0] == "one: the connection broke"
    assert "interrupted" not in errors.getvalue()
    assert "nothing matches" in errors.getvalue()


def test_lines_come_while_it_goes_on() -> None:
    out = io.StringIO()
    with FollowReporter(out, ["one"]) as reporter:
        reporter(Output("one", "Read", [EARLY]))
        time.sleep(1.0)
        assert "early" in out.getvalue()


def test_colours_are_for_a_terminal_that_wants_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def painted() -> str:
        terminal = Terminal()
        Painter(terminal, ["one", "two"]).write([("one", "a"), ("two", "b")])
        return terminal.getvalue()

    monkeypatch.delenv("NO_COLOR", raising=False)
    assert painted() == "\x1b[36mone\x1b[0m  a\n\x1b[33mtwo\x1b[0m  b\n"
    monkeypatch.setenv("NO_COLOR", "1")
    assert painted() == "one  a\ntwo  b\n"


def test_a_reader_that_has_gone_ends_it() -> None:
    read, write = os.pipe()
    with os.fdopen(write, "w") as stream:
        reporter = FollowReporter(stream, ["one"])
        with pytest.raises(KeyboardInterrupt), reporter:
            os.close(read)
            time.sleep(5)
        assert reporter.broken
