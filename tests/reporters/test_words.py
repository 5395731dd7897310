from __future__ import annotations

import pytest

from sparkops.events import HostEnd, Preflight, Progress
from sparkops.reporters import words
from tests.reporters.samples import task


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.0 s"), (12.34, "12.3 s"), (59.97, "1 min 00 s"), (125.2, "2 min 05 s"), (3725, "1 h 02 min")],
)
def test_duration(seconds: float, text: str) -> None:
    assert words.duration(seconds) == text


@pytest.mark.parametrize(("seconds", "text"), [(-1, "0:00"), (7.4, "0:07"), (754, "12:34"), (3723, "1:02:03")])
def test_clock(seconds: float, text: str) -> None:
    assert words.clock(seconds) == text


@pytest.mark.parametrize(
    ("done", "total", "unit", "text"),
    [
        (120, 189, "packages", "120/189 packages"),
        (1.2 * 2**30, 20.4 * 2**30, "bytes", "1.2/20.4 GiB"),
        (0, 512, "bytes", "0/512 B"),
        (2**50, None, "bytes", "1024.0 TiB"),
        (12, 300, "s", "12.0 s of 5 min 00 s"),
        (1234, None, "files", "1,234 files"),
    ],
)
def test_progress(done: float, total: float | None, unit: str, text: str) -> None:
    assert words.progress(Progress("h", "t", done, total, unit)) == text


@pytest.mark.parametrize(
    ("speed", "unit", "text"),
    [(118 * 2**20, "bytes", "118 MiB/s"), (12.3, "packages", "12/s"), (0.52, "files", "0.5/s")],
)
def test_rate(speed: float, unit: str, text: str) -> None:
    assert words.rate(speed, unit) == text


def test_a_task_is_one_line() -> None:
    assert words.task(task(), width=8) == "spark-1   changed      Install packages (1.2 s)"
    assert words.task(task(msg="git, curl")) == "spark-1  changed      Install packages (1.2 s): git, curl"


def test_a_long_message_goes_below() -> None:
    text = words.task(task(state="failed", msg="pip failed\nno such wheel\n"))
    assert text.splitlines()[1:] == ["    pip failed", "    no such wheel"]


def test_a_task_without_a_name_shows_its_module() -> None:
    assert "package (" in words.task(task(task=""))


def test_a_host_end_gives_its_hint_and_no_message_twice() -> None:
    end = HostEnd("spark-1", "Provision", "unreachable", 10, "no route", "is it on?")
    assert words.host_end(end) == "spark-1  unreachable  Provision (10.0 s): no route\n    hint: is it on?"
    assert "no route" not in words.host_end(end, known=True)


def test_what_a_node_says_can_not_drive_the_terminal() -> None:
    text = words.task(task(task="evil\x1b[2J", msg="a\rb\x9b31m \udcff\r\nc\td"))
    assert not set(text) & {"\x1b", "\r", "\x9b"}
    assert "evil\\x1b[2J" in text
    assert "a\\x0db\\x9b31m \\udcff" in text
    assert text.endswith("c\td")
    text.encode("utf-8")


CHECKS = Preflight([
    {"check": "driver", "verdict": "pass", "found": "580", "remedy": "", "hosts": ["a", "b", "c", "d", "e"]},
    {"check": "port", "verdict": "fail", "found": "\x1b[1mtaken", "remedy": "stop it", "hosts": ["b"]},
    {"check": "port", "verdict": "pass", "found": "free", "remedy": "", "hosts": ["a", "c", "d", "e"]},
    {"check": "reboot", "verdict": "warn", "found": "pending", "remedy": "reboot", "hosts": ["a", "c"]},
])  # fmt: skip


def test_the_preflight_is_a_table() -> None:
    lines = words.preflight(CHECKS, everything=True)
    assert [kind for _, kind in lines] == ["ok", "failed", "ok", "notice"]
    assert "\n".join(text for text, _ in lines).splitlines() == [
        "pass  driver  all 5 nodes         580",
        "fail  port    b                   \\x1b[1mtaken",
        "                                  -> stop it",
        "pass  port    a, c, d and 1 more  free",
        "warn  reboot  a, c                pending",
        "                                  -> reboot",
    ]


def test_a_run_shows_what_is_not_as_it_should_be() -> None:
    assert [text.split()[:2] for text, _ in words.preflight(CHECKS, everything=False)] == [
        ["fail", "port"],
        ["warn", "reboot"],
    ]
    assert words.preflight(Preflight(CHECKS.checks[:1]), everything=False) == []
