"""Blocks, loops, handlers and the like, on the real executor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sparkops.events import Handler, Task
from tests.runner.conftest import Play, ending, tasks


def test_rescue_and_always(play: Play) -> None:
    ran = play(
        tasks(
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
        tasks(
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
        tasks(
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
        tasks(
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
        tasks(
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
        tasks(
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
        tasks(
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


def test_check_mode_of_a_task(play: Play, tmp_path: Path) -> None:
    ran = play(
        tasks(
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
    ran = play(tasks('- {name: slow, command: "sleep 30", timeout: 0.3}\n- {name: next, command: "true"}'))
    assert ran.states() == {"slow": "failed"}


def test_short_forms_of_arguments(play: Play, tmp_path: Path) -> None:
    ran = play(
        tasks(
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
        play(tasks(text))
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


def test_a_name_that_turns_out_undefined_fails_its_task(play: Play, tmp_path: Path) -> None:
    ran = play(
        tasks(
            """
            - {name: it, command: echo x, register: it}
            - {name: uses it, command: "echo {{ it.nosuch }}"}
            - {name: never, command: "true"}
            """
        )
    )
    assert (ran.code, ran.states()) == (2, {"it": "changed", "uses it": "failed"})
    end = ending(ran)
    assert end.msg.startswith(f"{tmp_path}/play.yml:6:")


def test_a_notification_of_nobody_is_an_error(play: Play) -> None:
    ran = play(tasks('- {name: t, command: "true", notify: "{{ who }}", vars: {who: nobody}}'))
    end = ending(ran)
    assert (ran.code, end.state) == (2, "failed")
    assert "no handler is called 'nobody'" in end.msg


def test_a_notification_just_before_a_failure_is_remembered(play: Play, tmp_path: Path) -> None:
    ran = play(
        tasks('- {name: t, command: "true", changed_when: true, notify: h}\n- {name: bad, fail: }').rstrip()
        + "\n  handlers: [{name: h, command: 'true'}]\n"
    )
    assert (ran.code, ran.states()) == (1, {"t": "changed", "bad": "failed"})
    assert (tmp_path / "state/pending").read_text() == '{"play.yml:all": ["h"]}'
