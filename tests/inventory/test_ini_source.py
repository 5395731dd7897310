"""What is wrong in an INI inventory is told with its place. What is right is compared in tests/differential."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkops.errors import InputError, Position
from sparkops.inventory import Inventory, load


def inventory(tmp_path: Path, text: str) -> Inventory:
    (tmp_path / "hosts.ini").write_text(text)
    return load([str(tmp_path / "hosts.ini")])


@pytest.mark.parametrize(
    ("text", "line", "column", "says", "hint"),
    [
        ("[web]\nw1 port\n", 2, 4, "'port'", "quote"),
        ("[web]\n  w1 a=1 b=2 c\n", 2, 14, "'c'", None),
        ('[web]\nw1 a="x\n', 2, 1, "quot", "close"),
        ("[web]\nw[3:1]\n", 2, 1, "after", None),
        ("[web]\n -x\n", 2, 2, "'-x'", None),
        ("[web]\nw1 a='{[]: 1}'\n", 2, 4, "Python", "quote"),
        ("[web:vras]\n", 1, 6, "'vras'", "did you mean 'vars'?"),
        ("[web servers]\n", 1, 1, "no section", "[GROUP]"),
        ("[web]\n[web:vars]\nword\n", 3, 1, "NAME=VALUE", None),
        ("[web]\n[web:vars]\n =1\n", 3, 2, "NAME=VALUE", None),
        ("[web:children]\na b\n", 2, 1, "name of a group", None),
        ("[web]\n[top:children]\nwbe\n", 3, 1, "'wbe' is a child", "did you mean 'web'?"),
        ("[web]\n[wbe:vars]\na=1\n", 2, 2, "'wbe' has variables", "did you mean 'web'?"),
        ("[db]\n[x:vars]\na=1\n", 2, 2, "'x'", "add a section [x]"),
        ("[a:children]\nb\n[b:children]\na\n", 4, 1, "b > a > b", "hosts.ini:2:1"),
        ("[a:children]\na\n", 2, 1, "itself", None),
        ("[a:children]\nall\n", 2, 1, "'all'", None),
        ("[a]\nh\n[a:vars]\nx=1\nansible_group_priority = high\n", 5, 1, "whole number", None),
        ("all:\n  hosts:\n    x:\n", 1, 1, "'all:'", "YAML"),
        ("---\nx\n", 1, 1, "'---'", "YAML"),
    ],
)
def test_wrong_ones_have_a_position(
    tmp_path: Path, text: str, line: int, column: int, says: str, hint: str | None
) -> None:
    with pytest.raises(InputError) as caught:
        inventory(tmp_path, text)
    assert caught.value.where == Position(str(tmp_path / "hosts.ini"), line, column)
    assert says in caught.value.message
    if hint:
        assert caught.value.hint and hint in caught.value.hint


def test_values_know_their_place(tmp_path: Path) -> None:
    host = inventory(tmp_path, "[web]\n w1:22 a=1  b='x y' #\n[web:vars]\n c = '{{ a }}'\n").hosts["w1"]
    where = str(tmp_path / "hosts.ini")
    assert host.origins == {
        "a": Position(where, 2, 8), "b": Position(where, 2, 13), "c": Position(where, 4, 2),
        "ansible_port": Position(where, 2, 2),
    }  # fmt: skip
    assert host.vars["c"].position == Position(where, 4, 2)


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("hosts", "[web]\nw1 x\n", "'x'"),
        ("hosts", "web:\n  hosts: [\n", "YAML"),
        ("hosts", "w1 x y\n", "'x'"),
        ("hosts.yml", "[web]\nw1 x\n", "'x'"),
        ("hosts.yml", "w1: {\n", "YAML"),
        ("hosts.yml", "- w1\n", "not a list"),
        ("hosts.ini", "web:\n  hosts: [\n", "'web:'"),
    ],
)
def test_the_error_is_that_of_the_language_that_was_meant(tmp_path: Path, name: str, text: str, says: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=says):
        load([str(tmp_path / name)])
