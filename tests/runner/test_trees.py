"""A folder through the whole of a run: one stream for all files, compared on the node."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from sparkops.errors import InputError
from sparkops.playbook.files import Files


def files(folder: Path) -> Files:
    return Files(lambda kind: [folder], lambda name: {})


def test_a_folder_s_files_and_folders(tmp_path: Path) -> None:
    (tmp_path / "conf/in").mkdir(parents=True)
    (tmp_path / "conf/b").write_bytes(b"b")
    (tmp_path / "conf/in/a").write_bytes(b"aa")
    (tmp_path / "elsewhere").write_bytes(b"linked")
    (tmp_path / "conf/link").symlink_to("../elsewhere")
    found = files(tmp_path).source("conf", str(tmp_path / "p.yml"), None, folders=True)
    inside = files(tmp_path).source("conf/", str(tmp_path / "p.yml"), None, folders=True)
    assert (found["name"], inside["name"], found["size"]) == ("conf", "", 9)
    assert [(name, size) for name, size, _ in found["tree"]["files"]] == [("b", 1), ("link", 6), ("in/a", 2)]
    assert found["tree"]["folders"] == ["in"]


def test_a_link_back_is_refused(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/back").symlink_to(".")
    with pytest.raises(InputError):
        files(tmp_path).source("conf", str(tmp_path / "p.yml"), None, folders=True)


def test_other_modules_want_a_file(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    with pytest.raises(InputError, match="a file is wanted"):
        files(tmp_path).source("conf", str(tmp_path / "p.yml"), None)


@pytest.mark.parametrize("sizes", [[0, 1, 300_000, 261_504, 7], [1] * 500, [0]])
def test_one_stream(tmp_path: Path, play: Any, sizes: list[int]) -> None:
    source, dest = tmp_path / "src", tmp_path / "dest"
    source.mkdir()
    for number, size in enumerate(sizes):
        (source / f"{number:04}").write_bytes(os.urandom(size))
    book = f"- hosts: all\n  gather_facts: false\n  tasks:\n    - copy: {{src: {source}/, dest: {dest}}}\n"
    done = play(book)
    assert list(done.states().values()) == ["changed"]
    assert {path.name: path.read_bytes() for path in dest.iterdir()} == {
        path.name: path.read_bytes() for path in source.iterdir()
    }
    assert list(play(book).states().values()) == ["ok"]
