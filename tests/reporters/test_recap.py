from __future__ import annotations

import pytest

from sparkops.events import Recap
from sparkops.reporters import recap
from tests.reporters.samples import counts


def test_lines_are_aligned_and_leave_out_states_that_nobody_has() -> None:
    lines = recap.lines(Recap({"spark-1": counts(ok=12), "spark-10": counts(ok=3, changed=1, unknown=2)}, 0))
    assert lines == [
        "spark-1  : ok=12  changed=0  failed=0  skipped=0  unreachable=0  unknown=0",
        "spark-10 : ok=3   changed=1  failed=0  skipped=0  unreachable=0  unknown=2",
    ]


@pytest.mark.parametrize(("code", "reason"), [(130, "interrupted"), (5, "another run holds a node's lease")])
def test_what_ended_a_run_is_said_first(code: int, reason: str) -> None:
    assert recap.closing(Recap({"a": counts(ok=1)}, code)) == f"{reason}; nothing changed on 1 node"


@pytest.mark.parametrize(
    ("hosts", "check", "words"),
    [
        ({}, False, "no node was selected"),
        ({"a": counts(ok=1), "b": counts(ok=1)}, False, "nothing changed on 2 nodes"),
        ({"a": counts(ok=1)}, True, "nothing would change on 1 node"),
        ({"a": counts(changed=1), "b": counts()}, False, "1 task changed a"),
        ({"a": counts(changed=1), "b": counts(changed=2)}, False, "3 tasks changed 2 nodes"),
        ({"a": counts(changed=1, unknown=2)}, True, "3 tasks would or may change a"),
        (
            {"a": counts(ok=1), "b": counts(failed=1), "c": counts(unreachable=1)},
            False,
            "nothing changed on 3 nodes; 1 of 3 nodes failed: b; 1 of 3 nodes could not be reached: c",
        ),
    ],
)
def test_closing(hosts: dict[str, dict[str, int]], check: bool, words: str) -> None:
    assert recap.closing(Recap(hosts, 0), check=check) == words
