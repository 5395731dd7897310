"""Files that include others, on the real executor."""

from __future__ import annotations

from pathlib import Path

from sparkops.events import HostEnd
from tests.runner.conftest import Play, ending, tasks


def test_includes_and_imports(play: Play, tmp_path: Path) -> None:
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks/each.yml").write_text("- name: each {{ item }}\n  command: echo {{ item }}{{ extra }}\n")
    (tmp_path / "plain.yml").write_text(
        "- {name: imported, command: 'true'}\n- include_tasks: tasks/each.yml\n  vars: {item: z, extra: q}\n"
    )
    ran = play(
        tasks(
            """
            - {name: loop, include_tasks: each.yml, loop: [a, b], vars: {extra: "!"}}
            - {import_tasks: plain.yml, when: true}
            - {name: after, command: "true"}
            """
        )
    )
    assert list(ran.states()) == ["loop", "each a", "each b", "imported", "include_tasks", "each z", "after"]
    assert ran.results("each b")["stdout"] == "b!"
    assert ran.results("each z")["stdout"] == "zq"
    assert [session.waits for session in ran.sessions] == [1]


def test_an_include_behind_a_rescued_failure_runs_once(play: Play, tmp_path: Path) -> None:
    (tmp_path / "more.yml").write_text("- {name: more, command: 'true'}\n")
    ran = play(
        tasks(
            """
            - block:
                - {name: a, command: "false"}
              rescue:
                - {name: b, command: "true"}
            - {name: inc, include_tasks: more.yml}
            """
        )
    )
    assert [event.task for event in ran.tasks()] == ["a", "b", "inc", "more"]


def test_vars_files_and_imported_playbooks(play: Play, tmp_path: Path) -> None:
    (tmp_path / "v.yml").write_text("a: file\n")
    (tmp_path / "other.yml").write_text(
        "- hosts: all\n  gather_facts: false\n  tasks:\n    - {name: other, debug: {msg: '{{ b }}'}}\n"
    )
    ran = play(
        """
        - hosts: all
          gather_facts: false
          vars: {a: play}
          vars_files: [[none.yml, v.yml]]
          tasks:
            - {name: a, debug: {msg: "{{ a }}"}}
        - import_playbook: other.yml
          vars: {b: given}
        - import_playbook: other.yml
          when: false
          vars: {b: never}
        """
    )
    assert ran.results("a")["msg"] == "file"
    assert [event.state for event in ran.tasks("other")] == ["ok", "skipped"]


def test_files_that_include_themselves_end(play: Play, tmp_path: Path) -> None:
    (tmp_path / "again.yml").write_text("- name: deeper\n  include_tasks: again.yml\n")
    ran = play(tasks("- include_tasks: again.yml"))
    end = ending(ran)
    assert (ran.code, end.msg) == (2, f"{tmp_path}/again.yml:1:3: files include one another without an end")


def test_a_handler_that_includes_itself_ends_with_an_error(play: Play, tmp_path: Path) -> None:
    (tmp_path / "self.yml").write_text("- include_tasks: self.yml\n")
    ran = play(
        """
        - hosts: all
          gather_facts: false
          tasks:
            - {name: t, debug: , changed_when: true, notify: h}
          handlers:
            - {name: h, include_tasks: self.yml}
        """
    )
    assert ran.code == 2
    assert "self.yml" in next(event.msg for event in ran.events if isinstance(event, HostEnd))
