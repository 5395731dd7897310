from __future__ import annotations

import json
import os
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sparkops.node.api import Failure

RUN = {"content": "#!/bin/sh\nexec vllm serve\n", "mode": "0755"}
ENV = {"content": "VLLM_API_KEY=hush\nHF_HOME=/x\n", "mode": "0600"}


def listing(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(path): (path.lstat().st_mtime_ns, path.lstat().st_ino) for path in sorted(folder.rglob("*"))}


def test_releases_are_written_once_and_current_moves(tmp_path: Path, apply: Any, node: Any) -> None:
    node.program("nvidia-smi", "#!/bin/sh\necho 580.95.05, 16.00, 42\n")
    args = {"home": str(tmp_path / "h"), "service": "vllm", "files": {"run": RUN, "env": ENV}, "meta": {"who": "me"}}
    folder = tmp_path / "h/releases/vllm"
    checked = apply("release", check=True, **args)
    assert (checked.state, checked.result["release"], (tmp_path / "h").exists()) == ("changed", 1, False)
    done = apply("release", **args)
    assert (done.state, done.result["release"], done.result["previous"]) == ("changed", 1, None)
    assert done.result["path"] == str(folder / "1")
    assert (folder / "current").readlink() == Path("1")
    assert stat.S_IMODE((folder / "1/env").stat().st_mode) == 0o600
    assert stat.S_IMODE((folder / "1/run").stat().st_mode) == 0o755
    about = json.loads((folder / "1/release.json").read_text())
    assert about.pop("kernel") == os.uname().release
    assert about == {"who": "me", "release": 1, "files": ["env", "run"], "driver": "580.95.05"}
    assert stat.S_IMODE((folder / "1/SHA256SUMS").stat().st_mode) == 0o600
    subprocess.run(["sha256sum", "-c", "--strict", "--quiet", "SHA256SUMS"], cwd=folder / "1", check=True)
    before = listing(tmp_path)
    again = apply("release", **{**args, "meta": {"who": "another"}})
    assert (again.state, again.result["release"], listing(tmp_path)) == ("ok", 1, before)
    (folder / "1/unconfirmed").write_text("until then")
    assert apply("release", **args).state == "ok", "a marker is not of the release"


@pytest.mark.parametrize(
    "files",
    [
        {"run": {**RUN, "content": "other"}, "env": ENV},
        {"run": {**RUN, "mode": "0700"}, "env": ENV},
        {"run": RUN},
        {"run": RUN, "env": ENV, "more": {"content": ""}},
    ],
)
def test_any_difference_makes_the_next_number(tmp_path: Path, apply: Any, files: dict[str, Any]) -> None:
    home = str(tmp_path)
    apply("release", home=home, service="vllm", files={"run": RUN, "env": ENV})
    folder = tmp_path / "releases/vllm"
    assert apply("release", check=True, home=home, service="vllm", files=files).state == "changed"
    assert (folder / "current").readlink() == Path("1")
    done = apply("release", home=home, service="vllm", files=files)
    assert (done.state, done.result["release"], done.result["previous"]) == ("changed", 2, 1)
    assert (folder / "current").readlink() == Path("2")
    assert apply("release", home=home, service="vllm", files=files).state == "ok"


def test_after_a_rollback_the_next_number_is_new(tmp_path: Path, apply: Any) -> None:
    for content in ("1", "2"):
        apply("release", home=str(tmp_path), service="s", files={"run": {"content": content}})
    folder = tmp_path / "releases/s"
    (folder / "current").unlink()
    (folder / "current").symlink_to("1")
    assert apply("release", home=str(tmp_path), service="s", files={"run": {"content": "2"}}).result["release"] == 3


def test_what_a_killed_run_left_is_taken_away(tmp_path: Path, apply: Any) -> None:
    folder = tmp_path / "releases/s"
    (folder / ".sparkops-abc").mkdir(parents=True)
    (folder / ".sparkops-abc/run").touch()
    (folder / ".sparkops-def").symlink_to("7")
    apply("release", home=str(tmp_path), service="s", files={"run": RUN})
    assert sorted(path.name for path in folder.iterdir()) == ["1", "current"]


def test_a_secret_is_in_no_diff_and_no_result(tmp_path: Path, apply: Any) -> None:
    args = {"home": str(tmp_path), "service": "s"}
    first = apply("release", **args, files={"env": ENV})
    other = {"content": "VLLM_API_KEY=quiet\nHF_HOME=/x\nno value here\n", "mode": "0600"}
    second = apply("release", **args, files={"env": other})
    third = apply("release", **args, files={"env": {**other, "mode": "0644"}})
    apply("release", **args, files={"env": other})
    fourth = apply("release", **args, files={"env": {"content": "OPEN=1\n", "mode": "0644"}})
    for outcome in (first, second, third, fourth):
        assert not any(word in repr(vars(outcome)) for word in ("hush", "quiet", "no value here"))
    assert "+VLLM_API_KEY=(hidden, another value)" in second.diff
    assert " HF_HOME=(hidden)" in second.diff
    assert "+mode: 0644" in third.diff


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"service": "../x"}, "service: '../x'"),
        ({"service": ""}, "service: ''"),
        ({"service": "a b"}, "service"),
        ({"files": {"../run": RUN}}, "files: '../run'"),
        ({"files": {".hidden": RUN}}, "files"),
        ({"files": {"release.json": RUN}}, "written by this module"),
        ({"files": {"run": {"content": "x", "mode": 493}}}, "quote it"),
        ({"files": {"run": {"content": 1}}}, "content: TEXT"),
        ({"files": {"run": {"content": "x", "owner": "y"}}}, "content: TEXT"),
        ({"files": {"run": {"content": "x", "mode": "rwx"}}}, "neither octal"),
    ],
)
def test_bad_ones_write_nothing(tmp_path: Path, apply: Any, args: dict[str, Any], message: str) -> None:
    with pytest.raises(Failure, match=message):
        apply("release", **{"home": f"{tmp_path}/h", "service": "s", "files": {"run": RUN}, **args})
    assert not (tmp_path / "h").exists()
