from __future__ import annotations

import io
import os
import time
from concurrent.futures import ThreadPoolExecutor

from sparkops.events import Progress, RunStart, TaskStart
from sparkops.reporters.plain import PlainReporter
from tests.reporters.samples import RUN, task


def shown(verbosity: int = 0, *, diff: bool = False) -> str:
    stream = io.StringIO()
    with PlainReporter(stream, verbosity=verbosity, diff=diff) as reporter:
        for event in RUN:
            reporter(event)
    return stream.getvalue()


def test_a_run() -> None:
    assert shown() == (
        "provision.yml on 2 nodes (up to 5 at a time)\n"
        "spark-1  changed      Install packages (1.2 s)\n"
        "warning: spark-1: purging is not needed\n"
        "spark-1  done         Provision (3.4 s)\n"
        "spark-2  failed       Check the driver (1.2 s): driver 570.10 is older than 580\n"
        "spark-2  failed       Provision (0.5 s)\n"
        "    hint: install driver 580\n"
        "\n"
        "spark-1 : ok=1  changed=1  failed=0  skipped=0  unreachable=0\n"
        "spark-2 : ok=0  changed=0  failed=1  skipped=0  unreachable=0\n"
        "1 task changed spark-1; 1 of 2 nodes failed: spark-2\n"
    )


def test_what_a_playbook_says_is_shown_without_being_verbose() -> None:
    stream = io.StringIO()
    reporter = PlainReporter(stream)
    reporter(task(state="ok", module="debug", msg="fp8 pins its KV cache"))
    reporter(task(state="skipped", module="debug"))
    assert stream.getvalue() == "spark-1  ok           Install packages (1.2 s): fp8 pins its KV cache\n"


def test_diffs_only_when_asked_for() -> None:
    assert "+new" not in shown()
    assert "(1.2 s)\n--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new\n" in shown(diff=True)


def test_verbose_shows_what_is_ok_and_more_verbose_its_result() -> None:
    assert "spark-1  ok           Check the driver" in shown(1)
    assert "spark-1  start        Provision (3 tasks)" in shown(1)
    assert "580.95.05" not in shown(1)
    assert '      "driver": "580.95.05"\n' in shown(2)


def test_a_long_step_says_now_and_then_how_far_it_is() -> None:
    stream, now = io.StringIO(), 0.0
    reporter = PlainReporter(stream, clock=lambda: now)
    reporter(TaskStart("spark-1", "Provision", "Build", "python_venv"))
    for now in range(25):
        reporter(Progress("spark-1", "Build", now, 189, "packages", "torch"))
    assert stream.getvalue().splitlines() == [
        "spark-1  ...          Build: 10/189 packages, torch",
        "spark-1  ...          Build: 20/189 packages, torch",
    ]


class Interruptible(io.StringIO):
    """A stream that lets other threads in between the letters of a write."""

    def write(self, text: str) -> int:
        for letter in text:
            super().write(letter)
            time.sleep(0)
        return len(text)


def test_lines_of_many_threads_stay_whole() -> None:
    stream = Interruptible()
    hosts = [f"spark-{number}" for number in range(8)]
    with PlainReporter(stream) as reporter, ThreadPoolExecutor(8) as pool:
        reporter(RunStart("provision", hosts, check=False, forks=8))
        list(pool.map(lambda number: reporter(task(hosts[number % 8], msg="a\nb")), range(160)))
    lines = stream.getvalue().splitlines()[1:]
    assert len(lines) == 160 * 3
    assert lines[1::3] == ["    a"] * 160 and lines[2::3] == ["    b"] * 160


def test_a_reader_that_goes_away_does_not_stop_the_run() -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as stream, PlainReporter(stream) as reporter:
        for event in RUN:
            reporter(event)


def test_a_stream_of_few_letters_gets_escapes() -> None:
    raw = io.BytesIO()
    reporter = PlainReporter(io.TextIOWrapper(raw, encoding="ascii"))
    reporter(task(msg="naïve ✓"))
    assert b"na\\xefve \\u2713" in raw.getvalue()
