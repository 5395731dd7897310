"""The runner on the real executor: order, windows, registers, handlers, check mode, failures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sparkops.errors import InputError, InputErrors
from tests.runner.conftest import Play

TWO_FILES = """
- hosts: all
  gather_facts: false
  tasks:
    - name: folder
      file: {path: "{{ inventory_dir }}/out", state: directory}
    - name: text
      copy: {content: "hello {{ inventory_hostname }}\\n", dest: "{{ inventory_dir }}/out/{{ inventory_hostname }}"}
"""


def test_a_run_changes_and_the_second_does_not(play: Play, tmp_path: Path) -> None:
    first, second = play(TWO_FILES), play(TWO_FILES)
    assert first.states() == {"folder": "changed", "text": "changed"}
    assert (tmp_path / "out/one").read_text() == "hello one\n"
    assert second.states() == {"folder": "ok", "text": "ok"}
    assert (second.code, second.recap()["changed"], second.recap()["ok"]) == (0, 0, 2)


def test_check_mode_changes_nothing_and_tells_the_truth(play: Play, tmp_path: Path) -> None:
    checked = play(TWO_FILES, check=True)
    assert checked.states() == {"folder": "changed", "text": "changed"}
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "state").exists()


def test_tasks_that_need_no_result_share_a_window(play: Play) -> None:
    ran = play(TWO_FILES)
    assert [session.waits for session in ran.sessions] == [1]


def test_a_registered_result_ends_the_window_and_is_seen(play: Play) -> None:
    ran = play(
        """
        - hosts: all
          gather_facts: false
          tasks:
            - name: say
              command: echo hi
              register: said
            - name: alone
              command: "true"
            - name: use
              command: echo {{ said.stdout }}
              when: said is changed
            - name: skip
              command: "false"
              when: said.stdout == 'no'
        """
    )
    assert ran.results("use")["stdout"] == "hi"
    assert ran.states()["skip"] == "skipped"
    assert [session.waits for session in ran.sessions] == [2]


def test_facts_cut_the_window_only_where_they_are_used(play: Play) -> None:
    ran = play(
        """
        - hosts: all
          tasks:
            - name: before
              command: "true"
            - name: after
              command: echo {{ ansible_architecture }}
        """
    )
    assert ran.results("after")["stdout"] != ""
    assert [session.waits for session in ran.sessions] == [2]


HANDLED = """
- hosts: all
  gather_facts: false
  tasks:
    - name: file
      copy: {content: "x", dest: "{{ inventory_dir }}/f"}
      notify: [second, first]
    - name: then
      command: "%s"
  handlers:
    - name: first
      command: touch {{ inventory_dir }}/first
    - name: second
      command: touch {{ inventory_dir }}/second
    - name: third
      command: touch {{ inventory_dir }}/third
"""


def test_handlers_run_once_in_their_own_order(play: Play, tmp_path: Path) -> None:
    ran = play(HANDLED % "true")
    assert list(ran.states()) == ["file", "then", "first", "second"]
    assert not (tmp_path / "third").exists()
    assert not (tmp_path / "state/pending").exists()
    assert list(play(HANDLED % "true").states()) == ["file", "then"]


def test_handlers_left_behind_by_a_failed_run_run_in_the_next(play: Play, tmp_path: Path) -> None:
    failed = play(HANDLED % "false")
    assert (failed.code, failed.states()["then"]) == (1, "failed")
    assert json.loads((tmp_path / "state/pending").read_text()) == {"play.yml:all": ["second", "first"]}
    again = play(HANDLED % "true")
    assert again.states() == {"file": "ok", "then": "changed", "first": "changed", "second": "changed"}
    assert not (tmp_path / "state/pending").exists()


def test_a_failure_stops_its_host_alone(play: Play) -> None:
    ran = play(
        """
        - hosts: all
          gather_facts: false
          tasks:
            - name: fails on one
              command: test {{ inventory_hostname }} = two
            - name: next
              command: "true"
        """,
        hosts=("one", "two"),
    )
    assert ran.code == 1
    assert ran.states("one") == {"fails on one": "failed"}
    assert ran.states("two") == {"fails on one": "changed", "next": "changed"}


def test_ignored_and_judged_results(play: Play) -> None:
    ran = play(
        """
        - hosts: all
          gather_facts: false
          tasks:
            - name: ignored
              command: "false"
              ignore_errors: true
            - name: never changed
              command: "true"
              changed_when: false
            - name: expected
              command: sh -c "exit 3"
              register: it
              failed_when: it.rc != 3
            - name: wrong
              command: "true"
              register: it
              failed_when: it.rc == 0
        """
    )
    assert ran.states() == {"ignored": "ignored", "never changed": "ok", "expected": "changed", "wrong": "failed"}
    assert ran.code == 1


def test_a_loop_runs_all_its_items_and_fails_as_a_whole(play: Play) -> None:
    ran = play(
        """
        - hosts: all
          gather_facts: false
          tasks:
            - name: each
              command: sh -c "exit {{ item }}"
              loop: [0, 1, 0]
              register: all
              ignore_errors: true
            - name: seen
              assert: {that: "all.results | map(attribute='rc') | list == [0, 1, 0]"}
            - name: stops
              command: sh -c "exit {{ item }}"
              loop: [1, 0]
            - name: never
              command: "true"
        """
    )
    assert ran.states() == {"each": "ignored", "seen": "ok", "stops": "failed"}
    assert len(ran.results("stops")["results"]) == 2


def test_no_log_hides_all_but_the_state(play: Play) -> None:
    ran = play(
        """
        - hosts: all
          gather_facts: false
          tasks:
            - name: secret
              command: echo s3cret
              no_log: true
              register: it
            - name: used
              assert: {that: it.stdout == 's3cret'}
        """
    )
    assert ran.code == 0
    assert "s3cret" not in repr([event for event in ran.events if getattr(event, "task", "") == "secret"])


def test_tags_select(play: Play) -> None:
    text = """
    - hosts: all
      gather_facts: false
      tasks:
        - {name: a, command: "true", tags: x}
        - {name: b, command: "true", tags: [y, z]}
        - {name: c, command: "true", tags: always}
        - {name: d, command: "true", tags: never}
    """
    assert list(play(text).states()) == ["a", "b", "c"]
    assert list(play(text, tags=frozenset({"z"})).states()) == ["b", "c"]
    assert list(play(text, tags=frozenset({"never"})).states()) == ["c", "d"]
    assert list(play(text, skip_tags=frozenset({"x"})).states()) == ["b", "c"]


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("{name: t, fil: {path: /x}}", "'fil' is no module or word of a task"),
        ("{name: t, file: {path: /x, stat: file}}", "file has no argument 'stat'"),
        ("{name: t, file: {path: /x, state: directry}}", "file: state is 'directry'"),
        ("{name: t, file: {path: /x, mode: 0644}}", "file: mode is the number 420"),
        ("{name: t, file: {state: file}}", "file needs the argument 'path'"),
        ("{name: t, command: echo {{ nosuch }}}", "nosuch"),
        ("{name: t, command: 'true', async: 5}", "async: Ansible has this word, sparkops does not support it"),
        ("{name: t, command: 'true', notify: nobody}", "no handler is called 'nobody'"),
        ("{name: t, template: {src: none.j2, dest: /x}}", "there is no file none.j2"),
    ],
)
def test_wrong_input_is_found_before_anything_runs(play: Play, tmp_path: Path, task: str, said: str) -> None:
    text = f"""
    - hosts: all
      gather_facts: false
      tasks:
        - command: touch {{{{ inventory_dir }}}}/ran
        - {task.replace("echo {{ nosuch }}", "'echo {{ nosuch }}'")}
    """
    with pytest.raises(InputError) as caught:
        play(text)
    errors = caught.value.errors if isinstance(caught.value, InputErrors) else [caught.value]
    assert said in str(errors[0])
    assert str(errors[0].where).startswith(f"{tmp_path}/play.yml:6:")
    assert not (tmp_path / "ran").exists()


def test_the_lease_keeps_a_second_run_out(play: Play, tmp_path: Path) -> None:
    import fcntl

    play(TWO_FILES)
    with (tmp_path / "state/lease").open("r+") as lease:
        fcntl.flock(lease, fcntl.LOCK_EX)
        assert play(TWO_FILES).code == 5
        assert play(TWO_FILES, check=True).code == 0
    assert play(TWO_FILES).code == 0
