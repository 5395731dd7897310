from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest


def test_a_file(tmp_path: Path, apply: Any) -> None:
    (tmp_path / "f").write_bytes(b"abc")
    (tmp_path / "f").chmod(0o640)
    said = apply("stat", path=f"{tmp_path}/f").result["stat"]
    assert (said["exists"], said["isreg"], said["isdir"], said["islnk"]) == (True, True, False, False)
    assert (said["mode"], said["size"], said["rusr"], said["roth"]) == ("0640", 3, True, False)
    assert said["checksum"] == hashlib.sha1(b"abc").hexdigest()
    assert said["mtime"] == (tmp_path / "f").stat().st_mtime
    other = apply("stat", path=f"{tmp_path}/f", checksum_algorithm="sha256").result["stat"]
    assert other["checksum"] == hashlib.sha256(b"abc").hexdigest()
    assert "checksum" not in apply("stat", path=f"{tmp_path}/f", get_checksum=False).result["stat"]


@pytest.mark.parametrize("path", ["gone", "f/below"])
def test_nothing_there(tmp_path: Path, apply: Any, path: str) -> None:
    (tmp_path / "f").touch()
    assert apply("stat", path=f"{tmp_path}/{path}").result == {"stat": {"exists": False}}


def test_links(tmp_path: Path, apply: Any) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "l").symlink_to("d")
    said = apply("stat", path=f"{tmp_path}/l").result["stat"]
    assert (said["islnk"], said["lnk_target"], said["lnk_source"]) == (True, "d", str((tmp_path / "d").resolve()))
    assert apply("stat", path=f"{tmp_path}/l", follow=True).result["stat"]["isdir"] is True


def test_a_name_that_is_no_text(tmp_path: Path, apply: Any) -> None:
    name = os.fsdecode(b"\xff")
    (tmp_path / name).touch()
    assert apply("stat", path=f"{tmp_path}/{name}").result["stat"]["exists"] is True
