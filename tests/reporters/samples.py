"""Events as a run emits them, for the reporters' tests."""

from __future__ import annotations

import io
from typing import Any

from sparkops.events import STATES, Event, HostEnd, HostStart, Notice, Progress, Recap, RunStart, State, Task, TaskStart


def task(host: str = "spark-1", state: State = "changed", **fields: Any) -> Task:
    """A task that ended; `fields` replace what is made up here."""
    made_up: dict[str, Any] = {
        "play": "Provision",
        "task": "Install packages",
        "source": "provision.yml:12:5",
        "module": "package",
        "check": False,
        "seconds": 1.2,
    }
    return Task(host=host, state=state, **{**made_up, **fields})


def counts(**states: int) -> dict[str, int]:
    """A recap's row."""
    return {state: states.get(state, 0) for state in STATES}


RUN: list[Event] = [
    RunStart("/any/where/provision.yml", ["spark-1", "spark-2"], check=False, forks=5),
    HostStart("spark-1", "Provision", 3),
    TaskStart("spark-1", "Provision", "Install packages", "package"),
    Progress("spark-1", "Install packages", 20, 189, "packages"),
    task("spark-1", "ok", task="Check the driver", result={"driver": "580.95.05"}),
    task("spark-1", "changed", diff="--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new\n"),
    Notice("purging is not needed", host="spark-1"),
    HostEnd("spark-1", "Provision", "ok", 3.4),
    HostStart("spark-2", "Provision", 3),
    task("spark-2", "failed", task="Check the driver", msg="driver 570.10 is older than 580"),
    HostEnd("spark-2", "Provision", "failed", 0.5, "driver 570.10 is older than 580", "install driver 580"),
    Recap({"spark-1": counts(ok=1, changed=1), "spark-2": counts(failed=1)}, 1),
]


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True
