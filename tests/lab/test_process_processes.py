"""Which processes are a node's, and that those and no others are stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from sparkops.lab.process import processes
from sparkops.lab.process.processes import Process, members, parse_ps

MARK = b"SPARKOPS_LAB_TEST=%d" % os.getpid()


@contextmanager
def child(script: str, marked: bool = True) -> Iterator[subprocess.Popen[bytes]]:
    """A script of sh, in a session of its own."""
    name, value = MARK.decode().split("=")
    environment = {**os.environ, **({name: value} if marked else {})}
    with subprocess.Popen(["/bin/sh", "-c", script], env=environment, start_new_session=True) as process:
        try:
            yield process
        finally:
            process.kill()


def look() -> list[Process]:
    return processes.find(lambda entry: entry == MARK)


def test_who_belongs_to_a_set():
    yes, no = (b"M=1",), (b"M=2",)
    everyone = [
        Process(1, 0, 1, "a", no),
        Process(10, 1, 10, "a", yes),
        Process(11, 10, 10, "a"),  # a child
        Process(12, 1, 10, "a", no),  # in a session that one of them leads
        Process(13, 12, 13, "a"),  # a child of that one
        Process(20, 1, 5, "a", yes),  # in a session that someone else leads
        Process(21, 1, 5, "a", no),
        Process(22, 1, 0, "a", no),
        Process(99, 10, 99, "a", yes),
    ]
    found = members(everyone, lambda entry: entry == b"M=1", without=99)
    assert [process.pid for process in found] == [10, 11, 12, 13, 20]


def test_a_line_of_ps():
    line = b"  501   1  501 Mon Jan  1 10:00:00 2024     /bin/sh -c x A=1 SPARKOPS_LAB_ETC=/x/etc"
    process = parse_ps(line)
    assert (process.pid, process.parent, process.session) == (501, 1, 501)
    assert process.started == "Mon Jan 1 10:00:00 2024"
    assert b"SPARKOPS_LAB_ETC=/x/etc" in process.environment


def test_stop_ends_all_of_a_set_and_nothing_else():
    with child("sleep 1000", marked=False) as other, child("sleep 1000 & env -i sleep 1001 & wait") as process:
        while len(look()) < 3:
            time.sleep(0.01)
        processes.stop(look, grace=5)
        assert look() == []
        assert process.wait(5) == -15
        assert other.poll() is None


def test_stop_kills_who_does_not_listen():
    with child("trap '' TERM; echo ready; while :; do sleep 0.05; done") as process:
        time.sleep(0.2)
        started = time.monotonic()
        processes.stop(look, grace=0.3)
        assert 0.3 <= time.monotonic() - started < 5
        assert process.wait(5) == -9


def test_a_process_with_the_same_pid_is_not_signalled():
    with child("sleep 1000") as process:
        (found,) = [p for p in look() if p.pid == process.pid]
        assert processes.started(process.pid) == found.started
        processes.send([Process(found.pid, found.parent, found.session, "0")], signal.SIGKILL)
        time.sleep(0.1)
        assert process.poll() is None
    assert processes.started(process.pid) == ""


def test_this_process_is_never_found():
    assert os.getpid() not in [process.pid for process in processes.find(lambda _: True)]
    assert sys.platform != "linux" or processes.linux_table()
