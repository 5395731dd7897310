"""The table of the preflight comes once, behind all nodes' verdicts and before anything else."""

from __future__ import annotations

from typing import Any

from sparkops.cli.preflight import Gathered
from sparkops.events import Event, HostStart, Preflight, Recap, RunStart, Task
from tests.reporters.samples import task

ROW = {"check": "driver", "verdict": "pass", "found": "580", "remedy": ""}
BAD = {**ROW, "verdict": "fail", "found": "570", "remedy": "upgrade"}


def verdict(host: str, *rows: dict[str, Any]) -> Task:
    return task(
        host,
        "failed" if BAD in rows else "ok",
        play="Preflight",
        module="preflight_verdict",
        result={"rows": list(rows)},
    )


def told(*events: Event) -> list[Event]:
    found: list[Event] = []
    emit = Gathered(found.append)
    for event in events:
        emit(event)
    return found


START = RunStart("deploy.yml", ["a", "b", "c"], check=False, forks=5)


def test_one_table_for_all_nodes_in_their_order() -> None:
    given: list[Event] = [START, HostStart("a", "Preflight", 3), verdict("c", ROW), HostStart("b", "Preflight", 3)]
    given += [verdict("b", BAD), verdict("a", ROW), HostStart("a", "Deploy", 9), HostStart("c", "Deploy", 9)]
    found = told(*given, Recap({}, 0))
    (at,) = [at for at, event in enumerate(found) if isinstance(event, Preflight)]
    table = found.pop(at)
    assert found == [*given, Recap({}, 0)]
    assert at == 6
    assert isinstance(table, Preflight)
    assert table.checks == [{**ROW, "hosts": ["a", "c"]}, {**BAD, "hosts": ["b"]}]


def test_it_comes_also_when_no_node_goes_on() -> None:
    kinds = [event.event for event in told(START, verdict("a", BAD), Recap({}, 1))]
    assert kinds == ["run_start", "task", "preflight", "recap"]


def test_none_when_nothing_was_judged() -> None:
    assert told(START, HostStart("a", "Deploy", 1), task(), Recap({}, 0)) == [
        START,
        HostStart("a", "Deploy", 1),
        task(),
        Recap({}, 0),
    ]
