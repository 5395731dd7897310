"""--json: one JSON object a line and nothing else on stdout, with the recap last, also when a run fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.nodes import Nodes

pytestmark = pytest.mark.lab

TASK = {"event", "host", "play", "task", "source", "module", "state", "check", "seconds", "msg", "diff", "result"}
EVENTS = {"run_start", "host_start", "task", "progress", "handler", "host_end", "recap"}
COUNTS = {"ok", "changed", "failed", "skipped", "unreachable", "rescued", "ignored", "unknown"}
CHATTY = """
- hosts: all
  gather_facts: false
  tasks:
    - name: Talk
      command: sh -c 'echo to stdout; echo to stderr >&2; printf "\\303\\050\\n\\001"'
      notify: After
  handlers:
    - name: After
      command: "true"
"""


def test_the_events_of_a_run(nodes: Nodes, tmp_path: Path) -> None:
    (tmp_path / "chatty.yml").write_text(CHATTY)
    run = nodes.sparkops("play", str(tmp_path / "chatty.yml"), "-vv")
    kinds = [event["event"] for event in run.events]
    assert kinds[0] == "run_start"
    assert kinds[-1] == "recap"
    assert set(kinds) <= EVENTS
    assert kinds.count("task") == kinds.count("handler") == kinds.count("host_end") == 2
    for task in run.tasks():
        assert set(task) == TASK
        assert task["source"].startswith(str(tmp_path / "chatty.yml") + ":")
    assert all(set(counts) == COUNTS for counts in run.recap.values())
    assert "\x1b" not in run.out


FAILING = {
    "a task fails": ("- hosts: all\n  gather_facts: false\n  tasks: [{command: 'false'}]\n", (), 1),
    "an unknown word": ("- hosts: all\n  tusks: []\n", (), 2),
    "no such host": ("- hosts: all\n  tasks: []\n", ("--limit", "nobody"), 2),
    "an undefined name": ("- hosts: all\n  gather_facts: false\n  tasks: [{command: '{{ nothing }}'}]\n", (), 2),
    "no YAML": ("- hosts: [\n", (), 2),
    "a bad variable": ("- hosts: all\n  tasks: []\n", ("-e", "no-name"), 2),
}


@pytest.mark.parametrize("case", FAILING)
def test_the_recap_of_a_run_that_fails(nodes: Nodes, tmp_path: Path, case: str) -> None:
    text, words, rc = FAILING[case]
    (tmp_path / "play.yml").write_text(text)
    run = nodes.sparkops("play", str(tmp_path / "play.yml"), *words, rc=rc)
    assert run.events[-1]["event"] == "recap"
    assert run.events[-1]["exit_code"] == rc
    assert "Traceback" not in run.out + run.err
    assert rc == 1 or run.err.startswith("error:")


@pytest.mark.parametrize(
    "words",
    [
        ("deploy", "fp9", "--all-nodes"),
        ("deploy", "nvfp4", "--all-nodes"),
        ("deploy", "fp8"),
        ("deploy", "fp8", "nobody"),
        ("provision", "--all-nodes", "--recipe", "fp9"),
        ("provision", "--all-nodes", "--become-password-file", "/no/such/file"),
        ("play", "/no/such/play.yml"),
    ],
    ids=" ".join,
)
def test_the_recap_of_a_verb_with_bad_words(bare: Nodes, words: tuple[str, ...]) -> None:
    run = bare.sparkops(*words, rc=2)
    assert run.recap == {}
    assert run.err.startswith("error:")
    assert "Traceback" not in run.err


def test_the_recap_without_an_inventory(bare: Nodes) -> None:
    run = bare.sparkops("provision", "--all-nodes", inventory=Path("/no/such/inventory.yml"), rc=2)
    assert run.recap == {}
