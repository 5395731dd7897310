"""What no_log hides, and which diffs there are."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkops.errors import InputError, InputErrors
from sparkops.events import HostEnd
from tests.runner.conftest import Play

HEAD = "- hosts: all\n  gather_facts: false\n  tasks:\n"
SET = '    - {name: it, command: "echo s3cret", register: it, no_log: true}\n'


@pytest.mark.parametrize(
    "task",
    [
        '{name: t, file: {path: /x, mode: "{{ it.stdout }}"}, no_log: true}',
        '{name: t, file: {path: /x, mode: "{{ item }}"}, loop: ["{{ it.stdout }}"], no_log: true}',
        '{name: t, file: {path: /x, mode: "{{ it.stdout }}"}, no_log: "{{ it.nosuch }}"}',
        '{name: t, command: "true", when: "it.stdout | int(base=it.stdout)", no_log: true}',
        '{name: t, command: "true", notify: "{{ it.stdout }}", no_log: true}',
    ],
)
def test_a_hidden_task_that_cannot_be_rendered_says_where_and_no_more(play: Play, tmp_path: Path, task: str) -> None:
    ran = play(f"{HEAD}{SET}    - {task}\n")
    assert ran.code == 2
    assert "s3cret" not in repr(ran.events)
    (end,) = (event for event in ran.events if isinstance(event, HostEnd))
    assert end.msg.startswith(f"{tmp_path}/play.yml:5:")
    assert end.msg.endswith(": hidden by no_log")


def test_so_do_errors_that_are_found_before_the_run(play: Play) -> None:
    with pytest.raises(InputError) as caught:
        play(f"{HEAD}    - {{file: {{path: /x, mode: \"{{{{ 's3cret' }}}}\"}}, no_log: true}}\n")
    assert not isinstance(caught.value, InputErrors)
    assert caught.value.message == "hidden by no_log"
    assert caught.value.where is not None


def _copy(more: str) -> str:
    return f'{HEAD}    - {{name: t, copy: {{content: "text", dest: "{{{{ inventory_dir }}}}/f"{more}}}}}\n'


def test_diffs_are_there_only_when_they_are_asked_for(play: Play, tmp_path: Path) -> None:
    assert play(_copy("")).tasks("t")[0].diff is None
    (tmp_path / "f").unlink()
    assert "text" in (play(_copy(""), diff=True).tasks("t")[0].diff or "")


@pytest.mark.parametrize("mode", ['"0600"', '"0400"', '"u=rw,go="'])
@pytest.mark.parametrize("check", [True, False])
def test_a_file_for_its_owner_alone_has_no_diff(play: Play, mode: str, check: bool) -> None:
    ran = play(_copy(f", mode: {mode}"), diff=True, check=check)
    assert (ran.states(), ran.tasks("t")[0].diff) == ({"t": "changed"}, None)


def test_nor_has_one_that_was_so_before(play: Play, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("old")
    (tmp_path / "f").chmod(0o600)
    assert play(_copy(""), diff=True).tasks("t")[0].diff is None
    looped = _copy("").rstrip().removesuffix("}") + ", loop: [1]}\n"
    (tmp_path / "f").write_text("old")
    assert play(looped, diff=True).tasks("t")[0].diff is None
