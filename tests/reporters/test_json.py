from __future__ import annotations

import datetime
import io
import json

from sparkops.events import STATES, Progress
from sparkops.reporters.json import JsonReporter
from tests.reporters.samples import RUN, task


def written(*events: object) -> tuple[list[dict[str, object]], str]:
    stream, notices = io.StringIO(), io.StringIO()
    with JsonReporter(stream, notices) as reporter:
        for event in events or RUN:
            reporter(event)  # type: ignore[arg-type]
    assert stream.getvalue().endswith("\n")
    return [json.loads(line) for line in stream.getvalue().splitlines()], notices.getvalue()


def test_one_object_a_line_and_no_other_events_than_the_documented_ones() -> None:
    lines, notices = written()
    assert [line["event"] for line in lines] == [
        *("run_start", "host_start", "progress", "task", "task", "host_end"),
        *("host_start", "task", "host_end", "recap"),
    ]
    assert notices == "warning: spark-1: purging is not needed\n"


def test_a_task_has_the_documented_names() -> None:
    (line,), _ = written(task(diff="-a\n+b\n", result={"packages": ["git"]}))
    names = ["event", "host", "play", "task", "source", "module", "state", "check", "seconds", "msg", "diff", "result"]
    assert list(line) == names
    assert line["diff"] == "-a\n+b\n" and line["result"] == {"packages": ["git"]}


def test_the_last_line_is_the_recap() -> None:
    lines, _ = written()
    assert list(lines[-1]) == ["event", "hosts", "exit_code"]
    assert lines[-1]["exit_code"] == 1
    assert set(lines[-1]["hosts"]["spark-1"]) == set(STATES)  # type: ignore[index]


def test_any_text_and_any_value_makes_a_line() -> None:
    (line,), _ = written(task(msg="a\nb \u2028 \udcff \x1b", result={"day": datetime.date(2026, 7, 27)}))
    assert line["msg"] == "a\nb \u2028 \udcff \x1b"
    assert line["result"] == {"day": "2026-07-27"}


def test_a_progress_without_a_total() -> None:
    (line,), _ = written(Progress("spark-1", "Fetch", 10, None, "bytes"))
    assert line["total"] is None and line["unit"] == "bytes"
