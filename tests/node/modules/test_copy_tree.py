"""copy of a folder."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from sparkops.node import tree as code
from sparkops.node.api import Failure, Source, Tree

FILES = {"a": b"1", "sub/b": b"two", "sub/deep/c": b"", "sub/$(reboot) `x`;": b"hostile"}


def source(node: Any, files: dict[str, bytes] = FILES, name: str = "") -> Source:
    found = []
    for path, data in files.items():
        digest = hashlib.sha256(data).hexdigest()
        node.store[digest] = data
        found.append((path, len(data), digest))
    return Source(name, "", sum(map(len, files.values())), None, Tree(["sub", "sub/deep", "empty"], found))


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_all_of_it_once(tmp_path: Path, node: Any, apply: Any) -> None:
    dest = tmp_path / "new/d"
    args = {"src": source(node), "dest": str(dest), "mode": "0640", "directory_mode": "0750"}
    checked = apply("copy", check=True, **args)
    assert (checked.state, checked.msg, dest.parent.exists()) == ("changed", "4 of 4 files differ", False)
    assert node.fetched == []
    done = apply("copy", **args)
    assert (done.state, done.result["files"], done.result["files_changed"]) == ("changed", 4, 4)
    assert content(dest) == FILES
    assert (dest / "empty").is_dir()
    assert {stat.S_IMODE((dest / name).stat().st_mode) for name in FILES} == {0o640}
    assert stat.S_IMODE((dest / "sub/deep").stat().st_mode) == 0o750
    again = apply("copy", **args)
    assert (again.state, again.result["files_changed"]) == ("ok", 0)
    assert apply("copy", check=True, **args).state == "ok"


def test_what_differs_alone_is_fetched(tmp_path: Path, node: Any, apply: Any) -> None:
    args = {"src": source(node), "dest": str(tmp_path / "d")}
    apply("copy", **args)
    node.fetched.clear()
    (tmp_path / "d/sub/b").write_bytes(b"owt")
    (tmp_path / "d/other").write_bytes(b"stays")
    done = apply("copy", **args)
    assert (done.msg, done.diff) == ("1 of 4 files differ", f"~ {tmp_path}/d/sub/b\n")
    assert node.fetched == [hashlib.sha256(b"two").hexdigest()]
    assert content(tmp_path / "d") == {**FILES, "other": b"stays"}


def test_a_name_makes_a_folder_of_that_name(tmp_path: Path, node: Any, apply: Any) -> None:
    apply("copy", src=source(node, name="conf"), dest=f"{tmp_path}/d/")
    assert content(tmp_path / "d/conf") == FILES


def test_only_a_mode_differs(tmp_path: Path, node: Any, apply: Any) -> None:
    apply("copy", src=source(node), dest=f"{tmp_path}/d", mode="0644")
    (tmp_path / "d/a").chmod(0o600)
    done = apply("copy", src=source(node), dest=f"{tmp_path}/d", mode="0644")
    assert (done.state, done.result["files_changed"]) == ("changed", 1)
    assert stat.S_IMODE((tmp_path / "d/a").stat().st_mode) == 0o644


def test_backup_and_force(tmp_path: Path, node: Any, apply: Any) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d/a").write_bytes(b"old")
    apply("copy", src=source(node), dest=f"{tmp_path}/d", force=False)
    assert (tmp_path / "d/a").read_bytes() == b"old"
    apply("copy", src=source(node), dest=f"{tmp_path}/d", backup=True)
    assert sorted(path.read_bytes() for path in (tmp_path / "d").glob("a*")) == [b"1", b"old"]


def test_a_link_in_the_way_is_replaced(tmp_path: Path, node: Any, apply: Any) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "precious").write_bytes(b"mine")
    (tmp_path / "d/a").symlink_to("../precious")
    apply("copy", src=source(node), dest=f"{tmp_path}/d")
    assert (tmp_path / "precious").read_bytes() == b"mine"
    assert not (tmp_path / "d/a").is_symlink()


@pytest.mark.parametrize("spoil", ["a/x", "sub"])
def test_something_else_in_the_way(tmp_path: Path, node: Any, apply: Any, spoil: str) -> None:
    path = tmp_path / "d" / spoil
    path.parent.mkdir(parents=True)
    path.write_bytes(b"")
    with pytest.raises(Failure, match="is to be put there"):
        apply("copy", src=source(node), dest=f"{tmp_path}/d")


def test_other_bytes_never_arrive(tmp_path: Path, node: Any, apply: Any) -> None:
    given = source(node)
    node.store[hashlib.sha256(b"two").hexdigest()] = b"owt"
    (tmp_path / "d").mkdir()
    (tmp_path / "d/a").write_bytes(b"old")
    with pytest.raises(Failure, match="changed on the controller"):
        apply("copy", src=given, dest=f"{tmp_path}/d")
    # Nothing is renamed before all have come, and nothing half is left.
    assert content(tmp_path / "d") == {"a": b"old"}


def test_many_are_made_durable_together(tmp_path: Path, node: Any, apply: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "sync", lambda: synced.append(1))
    files = {f"f{number}": os.urandom(10) for number in range(code.FEW + 1)}
    apply("copy", src=source(node, files), dest=f"{tmp_path}/d")
    assert content(tmp_path / "d") == files
    assert synced == [1]
