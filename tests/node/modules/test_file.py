from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from sparkops.node.api import Failure

HOSTILE = ["a b", "a\nb", "-rf", "$(touch x)", "a'b\"c", "~", "*", os.fsdecode(b"\xff\xfe")]

# arguments (path: in the folder), what there is at the start, what there is at the end
CASES: list[tuple[dict[str, Any], dict[str, str], dict[str, str]]] = [
    ({"path": "d", "state": "directory"}, {}, {"d": "dir 0755"}),
    ({"path": "d/e/", "state": "directory", "mode": "0700"}, {}, {"d": "dir 0700", "d/e": "dir 0700"}),
    ({"path": "d", "state": "directory", "mode": "0700"}, {"d": "dir"}, {"d": "dir 0700"}),
    (
        {"path": "d", "state": "directory", "mode": "u=rwX,go=", "recurse": True},
        {"d": "dir", "d/f": "file"},
        {"d": "dir 0700", "d/f": "file 0600"},
    ),
    ({"path": "f", "mode": "0600"}, {"f": "file"}, {"f": "file 0600"}),
    ({"path": "f", "state": "absent"}, {"f": "file"}, {}),
    ({"path": "d", "state": "absent"}, {"d": "dir", "d/f": "file"}, {}),
    ({"path": "l", "state": "absent"}, {"d": "dir", "l": "-> d"}, {"d": "dir 0755"}),
    ({"path": "l", "state": "link", "src": "f"}, {"f": "file"}, {"f": "file 0644", "l": "-> f"}),
    (
        {"path": "l", "state": "link", "src": "g"},
        {"f": "file", "g": "file", "l": "-> f"},
        {"f": "file 0644", "g": "file 0644", "l": "-> g"},
    ),
    ({"path": "l", "state": "link", "src": "gone", "force": True}, {}, {"l": "-> gone"}),
    (
        {"path": "f", "state": "link", "src": "g", "force": True},
        {"f": "file", "g": "file"},
        {"f": "-> g", "g": "file 0644"},
    ),
    (
        {"path": "d", "state": "link", "src": "g", "force": True},
        {"d": "dir", "g": "file"},
        {"d": "-> g", "g": "file 0644"},
    ),
    ({"path": "l", "mode": "0600"}, {"f": "file", "l": "-> f"}, {"f": "file 0600", "l": "-> f"}),
    ({"path": "h", "state": "hard", "src": "f"}, {"f": "file"}, {"f": "file 0644", "h": "file 0644"}),
    *[({"path": name, "state": "directory"}, {}, {name: "dir 0755"}) for name in HOSTILE],
]
BAD: list[tuple[dict[str, Any], dict[str, str], str]] = [
    ({"path": "f"}, {}, "absent, cannot continue"),
    ({"path": "f", "state": "directory"}, {"f": "file"}, "already exists as a file"),
    ({"path": "f/d", "state": "directory"}, {"f": "file"}, "already exists as a file"),
    ({"path": "d", "state": "file"}, {"d": "dir"}, "is a directory"),
    ({"path": "l", "state": "link"}, {}, "needs src"),
    ({"path": "l", "state": "link", "src": "gone"}, {}, "does not exist"),
    ({"path": "f", "state": "link", "src": "g"}, {"f": "file", "g": "file"}, "refusing to convert"),
    (
        {"path": "d", "state": "link", "src": "g", "force": True},
        {"d": "dir", "d/x": "file", "g": "file"},
        "is not empty",
    ),
    ({"path": "f", "recurse": True, "state": "file"}, {"f": "file"}, "recurse"),
    ({"path": "f", "mode": "rw"}, {"f": "file"}, "neither octal"),
    ({"path": "f", "owner": "nobody-here"}, {"f": "file"}, "no user"),
]


def build(folder: Path, start: dict[str, str]) -> None:
    folder.mkdir()
    for name, kind in start.items():
        path = folder / name
        if kind == "dir":
            path.mkdir(0o755)
        elif kind == "file":
            path.touch(0o644)
        else:
            path.symlink_to(kind[3:])


def listing(folder: Path) -> dict[str, str]:
    found = {}
    for here, folders, names in os.walk(folder):
        for name in folders + names:
            path = Path(here, name)
            mode = path.lstat().st_mode
            kind = "dir" if stat.S_ISDIR(mode) else "file"
            text = f"-> {path.readlink()}" if path.is_symlink() else f"{kind} {stat.S_IMODE(mode):04o}"
            found[str(path.relative_to(folder))] = text
    return found


def placed(folder: Path, args: dict[str, Any]) -> dict[str, Any]:
    src = {"src": str(folder / args["src"])} if args.get("state") == "hard" else {}
    return {**args, "path": f"{folder}/{args['path']}", **src}


@pytest.mark.parametrize(("args", "start", "end"), CASES)
def test_check_predicts_apply_changes_and_again_is_ok(
    tmp_path: Path, apply: Any, args: dict[str, Any], start: dict[str, str], end: dict[str, str]
) -> None:
    folder = tmp_path / "w"
    build(folder, start)
    before = listing(folder)
    checked = apply("file", check=True, **placed(folder, args))
    assert (checked.state, listing(folder)) == ("changed", before)
    assert apply("file", **placed(folder, args)).state == "changed"
    assert listing(folder) == end
    again = apply("file", **placed(folder, args))
    assert (again.state, again.diff, listing(folder)) == ("ok", None, end)


@pytest.mark.parametrize(("args", "start", "message"), BAD)
def test_bad_ones_fail_and_change_nothing(
    tmp_path: Path, apply: Any, args: dict[str, Any], start: dict[str, str], message: str
) -> None:
    folder = tmp_path / "w"
    build(folder, start)
    before = listing(folder)
    with pytest.raises(Failure, match=message):
        apply("file", **placed(folder, args))
    assert listing(folder) == before


def test_an_empty_path_is_not_the_current_folder(apply: Any) -> None:
    with pytest.raises(Failure, match="path is empty"):
        apply("file", path="", state="absent")


def test_what_an_earlier_task_may_make_is_unknown_in_check_mode(tmp_path: Path, apply: Any) -> None:
    assert apply("file", check=True, path=f"{tmp_path}/f", mode="0600").state == "unknown"
    assert apply("file", check=True, path=f"{tmp_path}/l", state="link", src="f").state == "unknown"


def test_touch_changes_every_time(tmp_path: Path, apply: Any) -> None:
    assert apply("file", dest=f"{tmp_path}/f", state="touch").state == "changed"
    assert apply("file", dest=f"{tmp_path}/f", state="touch").state == "changed"


def test_recursion_survives_a_link_to_the_folder_above(tmp_path: Path, apply: Any) -> None:
    build(tmp_path / "w", {"d": "dir", "d/up": "-> ..", "x": "file"})
    assert apply("file", path=f"{tmp_path}/w/d", state="directory", recurse=True, mode="u=rwX,go=").state == "changed"
    assert apply("file", path=f"{tmp_path}/w/d", state="directory", recurse=True, mode="u=rwX,go=").state == "ok"
    assert listing(tmp_path / "w")["x"] == "file 0600"


def test_the_result_has_ansible_s_keys(tmp_path: Path, apply: Any) -> None:
    result = apply("file", path=f"{tmp_path}/d", state="directory", mode="0750").result
    assert {"path", "state", "mode", "owner", "group", "uid", "gid", "size"} <= set(result)
    assert (result["state"], result["mode"]) == ("directory", "0750")
