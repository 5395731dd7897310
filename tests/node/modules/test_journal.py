from __future__ import annotations

from typing import Any

import pytest

from sparkops.node.api import Failure
from tests.node.conftest import HereNode

OURS = ["journalctl", "--no-pager", "-q", "-o", "short-iso-precise"]
UNIT = ["-u", "vllm.service"]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({}, ["-n", "100"]),
        ({"lines": None}, ["-n", "all"]),
        ({"since": "1 hour ago", "lines": None}, ["--since=1 hour ago"]),
        ({"since": "--rotate", "lines": 5}, ["--since=--rotate"]),
        ({"grep": "-x; reboot"}, ["-n", "100", "--grep=-x; reboot", "-r"]),
        ({"grep": "x", "since": "today"}, ["--since=today", "--grep=x"]),
    ],
)
def test_what_is_asked(apply: Any, node: HereNode, args: dict[str, Any], words: list[str]) -> None:
    node.program("journalctl", "#!/bin/sh\nprintf '1 one\\n2 two\\n3 three\\n'\n")
    found = apply("journal", unit="vllm", **args)
    assert node.ran == [[*OURS, *words, *UNIT]]
    lines = ["1 one", "2 two", "3 three"]
    assert found.result["lines"] == (lines[::-1] if "-r" in words else lines)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({"lines": 5}, ["-n", "5", "-f"]),
        ({"since": "today"}, ["--since=today", "--no-tail", "-f"]),
        ({"grep": "x"}, ["-n", "100", "--grep=x", "-f"]),
    ],
)
def test_what_is_followed(apply: Any, node: HereNode, args: dict[str, Any], words: list[str]) -> None:
    node.program(
        "journalctl", "#!/bin/sh\nprintf 'one\\ntw'; sleep 0.1; printf 'o\\nunfinished'; echo over >&2; exit 3\n"
    )
    with pytest.raises(Failure, match="the journal ended: over"):
        apply("journal", unit="vllm", follow=True, **args)
    assert node.ran == [[*OURS, *words, *UNIT]]
    assert node.told == ["one", "two"]


def test_too_many_lines_since_then_are_cut(apply: Any, node: HereNode) -> None:
    node.program("journalctl", "#!/bin/sh\nseq 9\n")
    assert apply("journal", unit="vllm", since="today", lines=2).result["lines"] == ["8", "9"]


def test_nothing_found_is_no_failure_and_anything_else_is(apply: Any, node: HereNode) -> None:
    node.program("journalctl", "#!/bin/sh\nexit 1\n")
    assert apply("journal", unit="vllm", grep="x").result["lines"] == []
    with pytest.raises(Failure, match="status 1"):
        apply("journal", unit="vllm")
    node.program("journalctl", "#!/bin/sh\necho Bad pattern >&2; exit 1\n")
    with pytest.raises(Failure, match="Bad pattern"):
        apply("journal", unit="vllm", grep="(")


def test_a_check_follows_nothing(apply: Any, node: HereNode) -> None:
    assert apply("journal", unit="vllm", follow=True, check=True).state == "ok"
    assert node.ran == []
