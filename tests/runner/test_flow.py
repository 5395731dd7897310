"""Blocks, loops, includes, batches, delegation and the like, on the real executor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sparkops.events import Handler, HostEnd, Notice, Task
from sparkops.runner.batch import Budget
from tests.runner.conftest import Play, Ran

HEAD = "- hosts: all\n  gather_facts: false\n  tasks:\n"


def _tasks(text: str) -> str:
    from textwrap import dedent, indent

    return HEAD + indent(dedent(text), "    ")


def test_rescue_and_always(play: Play) -> None:
    ran = play(
        _tasks(
            """
            - block:
                - {name: a, command: "true"}
                - {name: b, command: "false"}
                - {name: never, command: "true"}
              rescue:
                - {name: saved, command: "echo {{ ansible_failed_task.name }}"}
              always:
                - {name: last, command: "true"}
            - {name: after, command: "true"}
            """
        )
    )
    assert ran.states() == {"a": "changed", "b": "rescued", "saved": "changed", "last": "changed", "after": "changed"}
    assert ran.results("saved")["stdout"] == "b"
    assert (ran.code, ran.recap()["rescued"], ran.recap()["failed"]) == (0, 1, 0)


def test_always_runs_and_the_failure_goes_on(play: Play) -> None:
    ran = play(
        _tasks(
            """
            - block:
                - block:
                    - {name: a, command: "false"}
                  always:
                    - {name: inner, command: "true"}
                - {name: skipped over, command: "true"}
              always:
                - {name: outer, command: "true"}
            - {name: never, command: "true"}
            """
        )
    )
    assert ran.states() == {"a": "failed", "inner": "changed", "outer": "changed"}
    assert ran.code == 1


def test_a_failing_rescue_fails_outwards(play: Play) -> None:
    ran = play(
        _tasks(
            """
            - block:
                - block:
                    - {name: a, command: "false"}
                  rescue:
                    - {name: b, fail: {msg: no}}
                  always:
                    - {name: c, command: "true"}
              rescue:
                - {name: d, command: "true"}
            """
        )
    )
    assert ran.states() == {"a": "rescued", "b": "rescued", "c": "changed", "d": "changed"}


def test_the_words_of_a_block_go_down(play: Play) -> None:
    ran = play(
        _tasks(
            """
            - when: yes_please is defined
              block:
                - {name: a, command: "true"}
            - vars: {x: 1, y: 1}
              environment: {SHOWN: "{{ x }}"}
              block:
                - {name: b, command: "sh -c 'echo $SHOWN {{ y }}'", vars: {y: 2}}
            """
        )
    )
    assert ran.states()["a"] == "skipped"
    assert ran.results("b")["stdout"] == "1 2"


def test_loops(play: Play) -> None:
    ran = play(
        _tasks(
            """
            - name: control
              command: echo {{ n }}-{{ i }}
              loop: [a, b]
              loop_control: {loop_var: n, index_var: i}
              register: out
            - {name: shown, debug: {msg: "{{ out.results | map(attribute='stdout') | list }}"}}
            - {name: items, debug: {msg: "{{ item }}"}, with_items: [[1, 2], 3]}
            - {name: dict, debug: {msg: "{{ item.key }}={{ item.value }}"}, with_dict: {k: v}}
            - {name: some, debug: {msg: "{{ item }}"}, loop: [1, 2, 3], when: item != 2}
            - {name: none, debug: {msg: x}, loop: []}
            """
        )
    )
    assert ran.results("shown")["msg"] == ["a-0", "b-1"]
    assert [one["msg"] for one in ran.results("items")["results"]] == [1, 2, 3]
    assert ran.results("dict")["results"][0]["msg"] == "k=v"
    assert [one.get("skipped", False) for one in ran.results("some")["results"]] == [False, True, False]
    assert ran.states()["none"] == "skipped"


@pytest.mark.parametrize(
    ("loop", "items"),
    [
        ("with_items: '{{ several }}'", ["a", "b"]),
        ("with_items: [1, [2, [3]]]", [1, 2, [3]]),
        ("with_items: {k: v}", [{"k": "v"}]),
        ("with_list: [1, [2]]", [1, [2]]),
        ("with_indexed_items: '{{ several }}'", [[0, "a"], [1, "b"]]),
        ("with_nested: [[1, 2], '{{ several }}']", [[1, "a"], [1, "b"], [2, "a"], [2, "b"]]),
        ("with_together: ['{{ several }}', [1]]", [["a", 1], ["b", None]]),
        ("with_sequence: start=1 end={{ last }} format=n%02d", ["n01", "n02"]),
        ("with_subelements: ['{{ users }}', keys]", [[{"name": "u"}, "k1"], [{"name": "u"}, "k2"]]),
        ("with_file: [note.txt, '{{ several[0] }}.txt']", ["hello", "last"]),
        ("with_fileglob: '*.txt'", ["files/note.txt"]),
        ("with_fileglob: ['none/*', '*.none']", []),
        ("with_first_found: [none.txt, note.txt]", ["files/note.txt"]),
        ("with_first_found: [{files: [none.txt], skip: true}]", []),
    ],
)
def test_lookups_as_loops(play: Play, tmp_path: Path, loop: str, items: list[Any]) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files/note.txt").write_text("hello\n")
    (tmp_path / "a.txt").write_text("last\n")
    (tmp_path / "files/a.md").write_text("")
    ran = play(
        f"""
        - hosts: all
          gather_facts: false
          vars: {{several: [a, b], last: 2, users: [{{name: u, keys: [k1, k2]}}]}}
          tasks:
            - name: t
              debug: {{msg: "{{{{ item }}}}"}}
              {loop}
        """
    )
    assert ran.code == 0
    said = [one["msg"] for one in ran.results("t")["results"]]
    assert said == [
        str(tmp_path / item) if loop.startswith(("with_fileglob", "with_first")) else item for item in items
    ]


def test_until_tries_again(play: Play, tmp_path: Path) -> None:
    ran = play(
        _tasks(
            """
            - name: third time
              command: sh -c "echo x >> {{ inventory_dir }}/n; test $(wc -l < {{ inventory_dir }}/n) = 3"
              register: it
              until: it.rc == 0
              retries: 5
              delay: 0
            - {name: never, command: "false", register: it, until: it.rc == 0, retries: 2, delay: 0}
            """
        )
    )
    assert ran.states() == {"third time": "changed", "never": "failed"}
    assert ran.results("third time")["attempts"] == 3
    assert ran.results("never")["attempts"] == 2


def test_facts_that_are_set_and_variables_that_are_included(play: Play, tmp_path: Path) -> None:
    (tmp_path / "vars").mkdir()
    (tmp_path / "vars/more.yml").write_text("from_file: 7\n")
    ran = play(
        _tasks(
            """
            - {name: set, set_fact: {a: 1, b: "{{ a | default(0) }}"}}
            - {name: include, include_vars: more.yml}
            - {name: both, debug: {msg: "{{ a }} {{ b }} {{ from_file }}"}}
            - {name: task, debug: {msg: "{{ a }} {{ from_file }}"}, vars: {a: 5, from_file: 6}}
            """
        )
    )
    assert ran.results("both")["msg"] == "1 0 7"
    assert ran.results("task")["msg"] == "1 7"
    assert not ran.sessions


def test_includes_and_imports(play: Play, tmp_path: Path) -> None:
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks/each.yml").write_text("- name: each {{ item }}\n  command: echo {{ item }}{{ extra }}\n")
    (tmp_path / "plain.yml").write_text(
        "- {name: imported, command: 'true'}\n- include_tasks: tasks/each.yml\n  vars: {item: z, extra: q}\n"
    )
    ran = play(
        _tasks(
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
        _tasks(
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


def test_flush_handlers_and_sections(play: Play) -> None:
    ran = play(
        """
        - hosts: all
          gather_facts: false
          pre_tasks:
            - {name: pre, command: "true", notify: h}
          tasks:
            - {name: one, command: "true", notify: [h, group]}
            - meta: flush_handlers
            - {name: two, command: "true"}
          post_tasks:
            - {name: post, command: "true", notify: h}
          handlers:
            - {name: h, command: "true"}
            - {name: listening, command: "true", listen: group}
        """
    )
    names = [event.task for event in ran.events if isinstance(event, (Task, Handler))]
    assert names == ["pre", "h", "one", "h", "listening", "two", "post", "h"]


def test_end_host_and_end_play(play: Play) -> None:
    ran = play(
        _tasks(
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
        _tasks(
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
        _tasks(
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
        _tasks(
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


def test_check_mode_of_a_task(play: Play, tmp_path: Path) -> None:
    ran = play(
        _tasks(
            """
            - {name: really, copy: {content: x, dest: "{{ inventory_dir }}/really"}, check_mode: false}
            - {name: never, copy: {content: x, dest: "{{ inventory_dir }}/never"}}
            """
        ),
        check=True,
    )
    assert (ran.states(), (tmp_path / "really").exists(), (tmp_path / "never").exists()) == (
        {"really": "changed", "never": "changed"}, True, False,
    )  # fmt: skip


def test_a_tasks_timeout(play: Play) -> None:
    ran = play(_tasks('- {name: slow, command: "sleep 30", timeout: 0.3}\n- {name: next, command: "true"}'))
    assert ran.states() == {"slow": "failed"}


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


def test_short_forms_of_arguments(play: Play, tmp_path: Path) -> None:
    ran = play(
        _tasks(
            """
            - name: pairs
              file: path="{{ inventory_dir }}/a b" state=directory mode="0700"
            - name: free
              command: touch x creates=x chdir={{ inventory_dir }}
            - name: args
              command: touch y
              args: {chdir: "{{ inventory_dir }}"}
            - {name: full, ansible.builtin.command: "true"}
            """
        )
    )
    assert set(ran.states().values()) == {"changed"}
    assert (tmp_path / "a b").is_dir()
    assert (tmp_path / "x").exists()
    assert (tmp_path / "y").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- {name: t, roles: x}", "sparkops does not support it"),
        ("- block: []\n  rescu: []", "'rescu' is no word of a block"),
        ("- {include_tasks: none.yml}", "there is no file none.yml"),
        ("- {import_tasks: none.yml}", "there is no file none.yml"),
        ("- {name: t, debug: {}, loop: [1], with_items: [2]}", "a task has one loop"),
        ("- {name: t, debug: {}, loop: 'x'}", "loop must be a list"),
        ("- {name: t, debug: {}, loop_control: {loopvar: x}}", "'loopvar' is no word of a loop_control"),
        ("- {name: t, meta: flush_handler}", "flush_handler"),
        ('- {name: t, command: "echo \'x"}', "never closed"),
        ("- {name: t, debug: {msg: \"{{ lookup('pipe', 'id') }}\"}}", "lookup('pipe')"),
    ],
)
def test_wrong_flow_is_found_before_anything_runs(play: Play, text: str, said: str) -> None:
    from sparkops.errors import InputError, InputErrors

    with pytest.raises(InputError) as caught:
        play(_tasks(text))
    errors = caught.value.errors if isinstance(caught.value, InputErrors) else [caught.value]
    assert said in str(errors[0])
    assert errors[0].where is not None


def test_handlers_that_the_controller_runs_are_not_run_again(play: Play, tmp_path: Path) -> None:
    text = """
    - hosts: all
      gather_facts: false
      tasks:
        - {name: once, command: "touch {{ inventory_dir }}/x", args: {creates: "{{ inventory_dir }}/x"}, notify: [h, i]}
      handlers:
        - {name: h, debug: {msg: now}}
        - {name: i, command: "true", until: true}
    """
    assert list(play(text).states()) == ["once", "h", "i"]
    assert not (tmp_path / "state/pending").exists()
    assert list(play(text).states()) == ["once"]


def _end(ran: Ran) -> HostEnd:
    return next(event for event in ran.events if isinstance(event, HostEnd))


def test_a_name_that_turns_out_undefined_fails_its_task(play: Play, tmp_path: Path) -> None:
    ran = play(
        _tasks(
            """
            - {name: it, command: echo x, register: it}
            - {name: uses it, command: "echo {{ it.nosuch }}"}
            - {name: never, command: "true"}
            """
        )
    )
    assert (ran.code, ran.states()) == (2, {"it": "changed", "uses it": "failed"})
    end = _end(ran)
    assert end.msg.startswith(f"{tmp_path}/play.yml:6:")


def test_files_that_include_themselves_end(play: Play, tmp_path: Path) -> None:
    (tmp_path / "again.yml").write_text("- name: deeper\n  include_tasks: again.yml\n")
    ran = play(_tasks("- include_tasks: again.yml"))
    end = _end(ran)
    assert (ran.code, end.msg) == (2, f"{tmp_path}/again.yml:1:3: files include one another without an end")


def test_each_item_goes_to_its_own_delegate(play: Play) -> None:
    ran = play(
        _tasks('- {name: there, command: "echo {{ item }}", delegate_to: "{{ item }}", loop: [a, b], run_once: true}'),
        hosts=("a", "b"),
    )
    assert len(ran.sessions) == 2
    assert [one["stdout"] for one in ran.results("there")["results"]] == ["a", "b"]


def test_a_notification_of_nobody_is_an_error(play: Play) -> None:
    ran = play(_tasks('- {name: t, command: "true", notify: "{{ who }}", vars: {who: nobody}}'))
    end = _end(ran)
    assert (ran.code, end.state) == (2, "failed")
    assert "no handler is called 'nobody'" in end.msg


def test_a_notification_just_before_a_failure_is_remembered(play: Play, tmp_path: Path) -> None:
    ran = play(
        _tasks('- {name: t, command: "true", changed_when: true, notify: h}\n- {name: bad, fail: }').rstrip()
        + "\n  handlers: [{name: h, command: 'true'}]\n"
    )
    assert (ran.code, ran.states()) == (1, {"t": "changed", "bad": "failed"})
    assert (tmp_path / "state/pending").read_text() == '{"play.yml:all": ["h"]}'


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
