"""When the node forgets that a handler is owed, and files that a task stops reading."""

from __future__ import annotations

import os
import threading
import time
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from sparkops.node import executor as code
from sparkops.node import frames
from sparkops.node.api import Failure, Outcome
from sparkops.node.executor import Executor
from sparkops.node.frames import Link, Parser, pack
from sparkops.node.runtime import LocalNode
from sparkops.node.state import State


def loop(*commands: str, **last: Any) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = [
        {"module": "command", "args": {"cmd": command, "argv": None}, "more": True} for command in commands
    ]
    steps[-1] = {**steps[-1], "more": False, **last}
    return steps


@pytest.fixture
def executor(tmp_path: Path) -> Any:
    feed_out, feed_in = os.pipe()
    out_out, out_in = os.pipe()
    it = Executor(Link(feed_out, out_in), b"")
    it.state = State(str(tmp_path / "state"))
    it.check = False
    it.state.notify("play", ["restart"])
    yield it, out_out, feed_in
    for fd in (feed_out, feed_in, out_out, out_in):
        os.close(fd)


def states(source: int) -> list[str]:
    parser = Parser()
    parser.feed(os.read(source, 1 << 20))
    found = []
    while (frame := parser.next()) is not None:
        found.append(frame[0].get("state", frame[0]["ev"]))
    return found


MARK = {"scope": "play", "handler": ["restart"]}


@pytest.mark.parametrize(
    ("tasks", "told", "owed"),
    [
        (loop("true", "true", **MARK), ["changed", "changed", "done"], False),
        (loop("false", "true", **MARK), ["failed", "changed", "done"], True),
        (loop("true", "false", **MARK), ["changed", "failed", "done"], True),
        ([*loop("false", go_on=True), *loop("true", "true", **MARK)], ["failed", "changed", "changed", "done"], False),
    ],
    ids=["all good", "an earlier item failed", "the last item failed", "another task failed"],
)
def test_a_handler_is_forgotten_when_all_its_items_were_good(
    executor: Any, tasks: list[dict[str, Any]], told: list[str], owed: bool
) -> None:
    it, out, _ = executor
    it.window(tasks)
    assert states(out) == told
    assert bool(it.state.pending()) is owed


def test_a_file_whose_task_gave_up_leaves_nothing_to_the_next(executor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    it, out, feed = executor
    first, second = b"a" * 200, b"b" * 200

    def gives_up(task: dict[str, Any], node: LocalNode) -> Outcome:
        data = first if task["give_up"] else second
        pieces = node.content(sha256(data).hexdigest(), len(data))
        if task["give_up"]:
            next(pieces)
            raise Failure("no space left on device")
        assert b"".join(pieces) == data
        return Outcome.changed()

    monkeypatch.setattr(code, "_apply", gives_up)
    for data in (first, second):
        os.write(feed, pack({"op": "piece"}, data[:150]) + pack({"op": "piece"}, data[150:]))
    it.window([{"module": "copy", "give_up": True, "more": True}, {"module": "copy", "give_up": False}])
    assert [state for state in states(out) if state not in ("need", "progress")] == ["failed", "changed", "done"]


def test_a_result_does_not_wait_for_a_slow_task_behind_it(executor: Any) -> None:
    it, out, _ = executor
    slow = threading.Thread(target=it.window, args=([*loop("true"), *loop("sleep 2")],))
    begun = time.monotonic()
    slow.start()
    assert states(out) == ["changed"]
    assert time.monotonic() - begun < 1
    slow.join()
    assert states(out) == ["changed", "done"]


def test_results_of_quick_tasks_travel_together(executor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    it, out, _ = executor
    monkeypatch.setattr(frames, "HOLD", 60.0)
    sizes: list[int] = []
    write = os.write

    def counted(fd: int, data: bytes) -> int:
        sizes.append(len(data))
        return write(fd, data)

    monkeypatch.setattr(os, "write", counted)
    it.window([{"module": "stat", "args": {"path": "/"}}] * 3)
    assert len(sizes) == 1
    assert states(out) == ["ok", "ok", "ok", "done"]


def test_results_leave_where_no_thread_can_start(executor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    it, out, _ = executor
    monkeypatch.setattr("_thread.start_new_thread", none_left)
    it.window([{"module": "stat", "args": {"path": "/"}}])
    assert states(out) == ["ok", "done"]
