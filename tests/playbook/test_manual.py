"""The manual says of every module what its source says, and its examples are right."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkops.playbook import modules, wordbook, words
from sparkops.playbook.manual import manual, synopsis
from sparkops.playbook.model import tasks_in
from sparkops.playbook.parse import playbook
from sparkops.project.yaml import load


@pytest.mark.parametrize("name", modules.names())
def test_every_module_has_a_manual(name: str) -> None:
    page = manual(name)
    assert page.synopsis == synopsis(name) and page.synopsis.endswith(".") and "\n" not in page.synopsis
    assert [argument.name for argument in page.arguments] == list(modules.module(name).fields)
    assert page.example
    assert [argument.name for argument in page.arguments if not argument.explanation] == []
    assert not any("fmt:" in argument.explanation for argument in page.arguments)


@pytest.mark.parametrize("name", modules.names())
def test_the_example_of_every_module_is_a_task_of_it(name: str, tmp_path: Path) -> None:
    example = manual(name).example
    book = tmp_path / "play.yml"
    book.write_text("- hosts: all\n  tasks:\n" + "".join(f"    {line}\n" for line in example.splitlines()))
    assert any(name in task or f"ansible.builtin.{name}" in task for task in load(book)[0]["tasks"])
    assert name in [task.module for section in playbook(book)[0].sections for task in tasks_in(section)]


def test_arguments_are_explained_by_prose_comments_and_usual_meaning() -> None:
    page_cache = {one.name: one for one in manual("page_cache").arguments}
    assert page_cache["scope"].choices == ["path", "all"] and page_cache["scope"].default == "path"
    assert page_cache["scope"].explanation.startswith("all drops the whole machine's cache")
    venv = {one.name: one for one in manual("python_venv").arguments}
    assert venv["lock"].required and venv["lock"].type == "file of the controller"
    assert "generate-hashes" in venv["lock"].explanation
    assert venv["probe"].type == "list of str"
    file = {one.name: one for one in manual("file").arguments}
    assert file["path"].aliases == ["dest", "name"] and file["mode"].explanation.startswith("permission bits")
    command = manual("command")
    assert command.free_form == "cmd" and command.notes[0].startswith("One of cmd, argv")
    assert {one.name: one.explanation for one in command.arguments}["removes"].startswith("a path or glob")
    assert {"rc", "stdout", "start"} <= set(command.result_keys)


def test_the_manual_of_an_action() -> None:
    check = manual("assert")
    assert not check.on_node and manual("file").on_node
    that, fail_msg = check.arguments[:2]
    assert (that.type, that.required, fail_msg.aliases) == ("list of expression", True, ["msg"])
    assert {"msg", "include"} <= {*manual("fail").result_keys, *manual("include_tasks").result_keys}
    assert manual("set_fact").open_ended and not check.open_ended
    meta = {one.name: one for one in manual("meta").arguments}
    assert meta["what"].choices[0] == "flush_handlers" and manual("meta").free_form == "what"


def test_the_manual_has_every_word_of_the_parser_and_no_other() -> None:
    known = words.TASK | words.HANDLER | words.BLOCK | words.PLAY | words.IMPORT | words.INCLUDE | words.IMPORT_PLAYBOOK
    assert wordbook.WORDS.keys() == known | {"import_tasks"}
    assert wordbook.LOOP_CONTROL.keys() == words.LOOP_CONTROL
    assert wordbook.places("rescue") == ["block"]
    assert wordbook.places("until") == ["task", "handler"]
    assert wordbook.places("name") == list(wordbook.PLACES)
