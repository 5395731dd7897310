"""Batches, budgets, delegation and what else concerns several hosts, on the real executor."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkops.events import Notice
from sparkops.runner.batch import Budget
from tests.runner.conftest import Play, tasks


def test_end_host_and_end_play(play: Play) -> None:
    ran = play(
        tasks(
            """
            - {meta: end_host, when: inventory_hostname == 'one'}
            - {name: more, command: "true"}
            """
        ),
        hosts=("one", "two"),
    )
    assert "more" not in ran.states("one")
    assert ran.states("two")["more"] == "changed"
    assert ran.code == 0


def test_serial_runs_batch_after_batch_and_stops_when_one_has_failed(play: Play, tmp_path: Path) -> None:
    text = """
    - hosts: all
      gather_facts: false
      serial: [1, "50%%"]
      tasks:
        - name: t
          command: >-
            sh -c 'echo {{ inventory_hostname }} {{ ansible_play_batch | length }} >> {{ inventory_dir }}/log%s'
    """
    play(text % "", hosts=("a", "b", "c", "d"))
    lines = (tmp_path / "log").read_text().split("\n")[:-1]
    assert lines[0] == "a 1"
    assert sorted(lines[1:3]) == ["b 2", "c 2"]
    assert lines[3] == "d 1"
    ran = play(text % "; exit 1", hosts=("a", "b", "c"))
    assert (ran.code, ran.states("a"), ran.states("b")) == (1, {"t": "failed"}, {})


def test_serial_counts_the_hosts_that_are_still_there(play: Play) -> None:
    text = """
    - hosts: all
      gather_facts: false
      tasks:
        - {name: look, command: "test {{ inventory_hostname }} != a"}
    - hosts: all
      gather_facts: false
      serial: [1, "100%"]
      tasks:
        - {name: canary, command: "false"}
    """
    ran = play(text, hosts=("a", "b", "c"))
    assert [(event.host, event.state) for event in ran.tasks("canary")] == [("b", "failed")]
    assert ran.states("c") == {"look": "changed"}


def test_any_errors_fatal_and_max_fail_percentage(play: Play) -> None:
    text = """
    - hosts: all
      gather_facts: false
      %s
      tasks:
        - {name: first, command: "test {{ inventory_hostname }} != b"}
        - {name: second, command: "true"}
    """
    ran = play(text % "any_errors_fatal: true", hosts=("a", "b", "c"))
    assert [ran.states(host) for host in "abc"] == [{"first": "changed"}, {"first": "failed"}, {"first": "changed"}]
    ran = play(text % "max_fail_percentage: 40", hosts=("a", "b", "c"))
    assert ran.states("a") == {"first": "changed", "second": "changed"}
    ran = play(text % "max_fail_percentage: 30", hosts=("a", "b", "c"))
    assert ran.states("a") == {"first": "changed"}


@pytest.mark.parametrize(
    ("budget", "failing", "ran", "said"),
    [
        (None, "ac", "abcdef", ""),
        (Budget(2), "ac", "abcdef", ""),
        (Budget(1), "ac", "abcd", "2 failed, and no more than 1 may: e, f not touched"),
        (Budget(0), "a", "ab", "1 failed, and no more than 0 may: c, d, e, f not touched"),
        (Budget(50, percent=True), "ace", "abcdef", ""),
        (Budget(49, percent=True), "c", "abcd", "1 of a batch of 2 failed, and no more than 49% may: e, f not"),
        (Budget(99), "cd", "abcd", "all hosts of a batch failed: e, f not touched"),
        (Budget(0), "e", "abcdef", ""),
    ],
)
def test_no_more_batches_than_the_budget_of_failures_allows(
    play: Play, budget: Budget | None, failing: str, ran: str, said: str
) -> None:
    text = f"""
    - hosts: all
      gather_facts: false
      serial: 2
      tasks:
        - {{name: first, command: "true", failed_when: "inventory_hostname in '{failing}'"}}
        - {{name: second, command: "true"}}
    """
    done = play(text, hosts=tuple("abcdef"), budget=budget)
    assert "".join(host for host in "abcdef" if done.states(host)) == ran
    # What a batch has begun it ends.
    assert all("second" in done.states(host) for host in ran if host not in failing)
    notices = [event.msg for event in done.events if isinstance(event, Notice)]
    assert done.code == 1
    assert [said in notice for notice in notices] == ([True] if said else [])


def test_run_once_gives_its_result_to_all(play: Play) -> None:
    ran = play(
        tasks(
            """
            - {name: once, command: "echo {{ inventory_hostname }}", run_once: true, register: it}
            - {name: all, debug: {msg: "{{ it.stdout }}"}}
            - {name: fact, set_fact: {who: "{{ inventory_hostname }}"}, run_once: true}
            - {name: told, debug: {msg: "{{ who }}"}}
            """
        ),
        hosts=("a", "b", "c"),
    )
    assert ran.code == 0
    once = [event.host for event in ran.tasks("once")]
    assert once == ["a"]
    told = {event.host: event.result["msg"] for event in [*ran.tasks("all"), *ran.tasks("told")]}
    assert told == {"a": "a", "b": "a", "c": "a"}


def test_hostvars_wait_for_the_others(play: Play) -> None:
    ran = play(
        tasks(
            """
            - name: own
              command: sh -c 'sleep 0.{{ {'a':4, 'b':0}[inventory_hostname] }}; echo {{ inventory_hostname }}'
              register: it
            - name: others
              debug:
                msg: "{{ groups.all | map('extract', hostvars) | map(attribute='it.stdout') | list }}"
            """
        ),
        hosts=("a", "b"),
    )
    assert [event.result["msg"] for event in ran.tasks("others")] == [["a", "b"], ["a", "b"]]


def test_delegation(play: Play) -> None:
    ran = play(
        tasks(
            """
            - {name: there, command: "echo {{ inventory_hostname }}", delegate_to: b, register: it}
            - {name: here, debug: {msg: "{{ it.stdout }}"}}
            - {name: local, command: "true", delegate_to: localhost}
            """
        ),
        hosts=("a", "b"),
    )
    assert ran.code == 0
    assert next(event.result["msg"] for event in ran.tasks("here") if event.host == "a") == "a"


def test_each_item_goes_to_its_own_delegate(play: Play) -> None:
    ran = play(
        tasks('- {name: there, command: "echo {{ item }}", delegate_to: "{{ item }}", loop: [a, b], run_once: true}'),
        hosts=("a", "b"),
    )
    assert len(ran.sessions) == 2
    assert [one["stdout"] for one in ran.results("there")["results"]] == ["a", "b"]
