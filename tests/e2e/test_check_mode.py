"""`--check --diff` on bare nodes: it foresees all that the run then changes, and leaves no trace."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.listing import Listing, differences, listing
from tests.e2e.nodes import PASSWORD, STATE, VERBS, Done, Nodes, lab

pytestmark = pytest.mark.lab

NODES = ("spark-1", "spark-2")
PROVISION, DEPLOY, _ = VERBS
# All labs of a machine share the models' files, and with them what of these is in the cache.
OWN = "/home/spark/own"
PURGE = ("purge-cache", "--path", OWN)


def states(run: Done) -> dict[tuple[str, str, str], str]:
    """Each task's state, by node, task and source."""
    found = {(task["host"], task["task"], task["source"]): task["state"] for task in run.tasks()}
    assert len(found) == len(run.tasks())
    return found


def assert_foreseen(check: Done, run: Done) -> None:
    foreseen, happened = states(check), states(run)
    assert set(foreseen) == set(happened)
    surprises = {
        task: (foreseen[task], state)
        for task, state in happened.items()
        if state == "changed" and foreseen[task] not in ("changed", "unknown")
    }
    assert surprises == {}
    assert "changed" in happened.values()
    assert all(task["check"] for task in check.tasks())


def look(nodes: Nodes) -> dict[str, Listing]:
    return {node: listing(nodes, node) for node in NODES}


def assert_untouched(before: dict[str, Listing], after: dict[str, Listing]) -> None:
    for node in NODES:
        assert differences(before[node], after[node], state=True) == {}


@pytest.mark.timeout(600)
def test_a_check_foresees_the_run_and_leaves_no_trace(tmp_path: Path, password_file: str) -> None:
    words = ("--become-password-file", password_file)
    with lab(tmp_path / "lab", 2, "nspawn", "--sudo-password", f"spark-2={PASSWORD}") as nodes:
        before = look(nodes)
        checks = [nodes.sparkops(*verb, "--check", "--diff", *words) for verb in VERBS]
        after = look(nodes)
        assert_untouched(before, after)
        assert STATE not in after["spark-1"]
        assert nodes.plain(*PROVISION, "--check", "--exit-code", *words).rc == 3
        assert_untouched(after, look(nodes))

        assert_foreseen(checks[0], nodes.sparkops(*PROVISION, *words))
        assert_foreseen(checks[1], nodes.sparkops(*DEPLOY, *words))
        own = f"mkdir {OWN}; head -c 1M /dev/zero > {OWN}/file"
        for node in NODES:
            nodes.on(node, "runuser", "-u", "spark", "--", "sh", "-c", own)
        before = look(nodes)
        check = nodes.sparkops(*PURGE, "--check", "--diff", *words)
        assert_untouched(before, look(nodes))
        assert_foreseen(nodes.sparkops(*PURGE, "--check", *words), nodes.sparkops(*PURGE, *words))
        assert check.count("failed") == {"spark-1": 0, "spark-2": 0}

        for verb in (PROVISION, DEPLOY, PURGE):
            again = nodes.sparkops(*verb, "--check", "--diff", *words)
            # A check runs no command, so purge-cache does not know then what is served.
            unknown = {task["module"] for task in again.tasks() if task["state"] in ("changed", "unknown")}
            assert unknown <= ({"command"} if verb == PURGE else set())


@pytest.mark.timeout(120)
def test_a_check_shows_what_a_file_would_hold(nodes: Nodes, password_file: str) -> None:
    beside = ("--service", "other", "-e", "port=8333", "-e", "preflight_ignore=services")
    words = ("deploy", "bf16", "spark-2", *beside, "--check", "--diff")
    run = nodes.sparkops(*words, "--become-password-file", password_file)
    diffs = {task["module"]: task["diff"] for task in run.tasks()}
    assert "+  --host 127.0.0.1 --port 8333" in diffs["release"]
    assert "ExecStart=/opt/sparkops/releases/other/current/run" in diffs["systemd_unit"]
