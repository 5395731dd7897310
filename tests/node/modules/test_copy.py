from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from sparkops.node.api import Failure, Source, Template


def source(data: bytes, name: str = "motd", inline: bool = True) -> Source:
    return Source(name, hashlib.sha256(data).hexdigest(), len(data), data if inline else None)


def test_content_is_written_once_with_its_mode(tmp_path: Path, apply: Any) -> None:
    dest = tmp_path / "f"
    args = {"content": "käse\n", "dest": str(dest), "mode": "0600"}
    checked = apply("copy", check=True, **args)
    assert (checked.state, dest.exists()) == ("changed", False)
    assert "+käse" in checked.diff
    done = apply("copy", **args)
    assert done.state == "changed"
    assert dest.read_text() == "käse\n"
    assert stat.S_IMODE(dest.stat().st_mode) == 0o600
    assert apply("copy", **args).state == "ok"
    assert done.result["sha256"] == hashlib.sha256("käse\n".encode()).hexdigest()


def test_an_empty_file(tmp_path: Path, apply: Any) -> None:
    assert apply("copy", content="", dest=f"{tmp_path}/f").state == "changed"
    assert apply("copy", content="", dest=f"{tmp_path}/f").state == "ok"


def test_only_the_mode_differs(tmp_path: Path, apply: Any) -> None:
    (tmp_path / "f").write_text("x")
    inode = (tmp_path / "f").stat().st_ino
    done = apply("copy", content="x", dest=f"{tmp_path}/f", mode="u+x")
    assert (done.state, done.msg) == ("changed", "mode 0644 -> 0744")
    assert (tmp_path / "f").stat().st_ino == inode


@pytest.mark.parametrize("dest", ["d", "d/", "new/deep/"])
def test_a_folder_takes_the_file_s_name(tmp_path: Path, apply: Any, dest: str) -> None:
    (tmp_path / "d").mkdir()
    assert apply("copy", src=source(b"x"), dest=f"{tmp_path}/{dest}").state == "changed"
    assert (tmp_path / dest / "motd").read_bytes() == b"x"
    assert apply("copy", src=source(b"x"), dest=f"{tmp_path}/{dest}").state == "ok"


def test_large_content_is_fetched_only_when_it_differs(tmp_path: Path, node: Any, apply: Any) -> None:
    data = os.urandom(200_000)
    digest = hashlib.sha256(data).hexdigest()
    node.store[digest] = data
    args = {"src": source(data, inline=False), "dest": f"{tmp_path}/f"}
    assert apply("copy", check=True, **args).state == "changed"
    assert node.fetched == []
    assert apply("copy", **args).state == "changed"
    assert (tmp_path / "f").read_bytes() == data
    assert apply("copy", **args).state == "ok"
    assert node.fetched == [digest]


def test_backup_keeps_what_was_there(tmp_path: Path, apply: Any) -> None:
    (tmp_path / "f").write_text("old")
    (tmp_path / "f").chmod(0o640)
    done = apply("copy", content="new", dest=f"{tmp_path}/f", backup=True)
    kept = Path(done.result["backup_file"])
    assert (kept.read_text(), stat.S_IMODE(kept.stat().st_mode)) == ("old", 0o640)
    assert kept.name.endswith("~")


def test_force_no_leaves_what_is_there(tmp_path: Path, apply: Any) -> None:
    (tmp_path / "f").write_text("old")
    assert apply("copy", content="new", dest=f"{tmp_path}/f", force=False).state == "ok"
    assert (tmp_path / "f").read_text() == "old"


def test_links(tmp_path: Path, apply: Any) -> None:
    (tmp_path / "t").write_text("old")
    (tmp_path / "l").symlink_to("t")
    apply("copy", content="through", dest=f"{tmp_path}/l", follow=True)
    assert (tmp_path / "t").read_text() == "through"
    apply("copy", content="instead", dest=f"{tmp_path}/l")
    assert ((tmp_path / "t").read_text(), (tmp_path / "l").is_symlink()) == ("through", False)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({}, "one of src and content"),
        ({"content": "x", "src": source(b"x")}, "one of src and content"),
        ({"content": "x", "dest": "d/"}, "is a folder"),
        ({"content": "x", "dest": "d"}, "is a directory"),
        ({"content": "x", "dest": "gone/f"}, "does not exist; make it"),
        ({"content": "x", "mode": "preserve"}, "neither octal"),
    ],
)
def test_bad_ones(tmp_path: Path, apply: Any, args: dict[str, Any], message: str) -> None:
    (tmp_path / "d").mkdir()
    with pytest.raises(Failure, match=message):
        apply("copy", **{**args, "dest": f"{tmp_path}/{args.get('dest', 'f')}"})
    assert list((tmp_path / "d").iterdir()) == []
    assert not (tmp_path / "f").exists()


def test_a_folder_that_an_earlier_task_makes_is_no_failure_in_check_mode(tmp_path: Path, apply: Any) -> None:
    assert apply("copy", check=True, content="x", dest=f"{tmp_path}/gone/f").state == "changed"


@pytest.mark.parametrize("name", ["a b", "-n", "a\nb", "'\"$(x)", os.fsdecode(b"\xff")])
def test_hostile_names(tmp_path: Path, apply: Any, name: str) -> None:
    assert apply("copy", content="x", dest=f"{tmp_path}/{name}").state == "changed"
    assert (tmp_path / name).read_text() == "x"


def test_template(tmp_path: Path, apply: Any) -> None:
    args = {"src": Template("port: 8000\n"), "dest": f"{tmp_path}/f", "mode": "0640"}
    assert "+port: 8000" in apply("template", check=True, **args).diff
    assert apply("template", **args).state == "changed"
    assert apply("template", **args).state == "ok"
    changed = apply("template", **{**args, "src": Template("port: 8001\n")})
    assert "-port: 8000\n+port: 8001\n" in changed.diff
    with pytest.raises(Failure, match="is a directory"):
        apply("template", src=Template(""), dest=str(tmp_path))
