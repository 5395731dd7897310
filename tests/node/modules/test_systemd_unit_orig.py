"""A unit file that sparkops did not make is kept before it is replaced. As data: no systemd is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sparkops.node import systemd
from sparkops.node.modules import systemd_unit

OURS = "# Written by sparkops. What is served stands elsewhere.\n[Service]\nExecStart=/bin/{name}\n"
THEIRS = "[Service]\nExecStart=/usr/bin/theirs\n"


@pytest.fixture
def folder(node: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    made = Path(node.home, ".config/systemd/user")
    made.mkdir(parents=True)
    return made


def write(node: Any, content: str, check: bool = False, **more: Any) -> systemd_unit.Unit:
    values: dict[str, Any] = {
        "content": content,
        "scope": "user",
        "state": None,
        "enabled": None,
        "watch": [],
        "restart": False,
        "known": False,
    }
    node.check = check
    unit = systemd_unit.Unit("vllm.service", systemd_unit.Args(name="vllm", **{**values, **more}), node)
    unit.write()
    return unit


def test_anothers_unit_is_kept_once(node: Any, folder: Path) -> None:
    path, orig = folder / "vllm.service", folder / "vllm.service.orig"
    path.write_text(THEIRS)
    path.chmod(0o600)
    assert "backup_file" not in write(node, OURS.format(name="one"), check=True).said()
    assert (path.read_text(), orig.exists()) == (THEIRS, False), "a check changes nothing"
    assert write(node, OURS.format(name="one")).said()["backup_file"] == str(orig)
    assert (orig.read_text(), orig.stat().st_mode & 0o777) == (THEIRS, 0o600)
    assert path.read_text() == OURS.format(name="one")
    path.write_text("[Service]\nExecStart=/usr/bin/again\n")
    assert "backup_file" not in write(node, OURS.format(name="two")).said()
    assert orig.read_text() == THEIRS, "an .orig is never overwritten"
    assert path.read_text() == OURS.format(name="two")


@pytest.mark.parametrize("before", [None, OURS.format(name="one"), OURS.format(name="old")])
def test_what_sparkops_made_or_what_is_the_same_is_not_kept(node: Any, folder: Path, before: str | None) -> None:
    if before is not None:
        (folder / "vllm.service").write_text(before)
    write(node, OURS.format(name="one"))
    assert [path.name for path in folder.iterdir()] == ["vllm.service"]


def test_the_same_text_without_the_mark_is_not_kept(node: Any, folder: Path) -> None:
    (folder / "vllm.service").write_text(THEIRS)
    write(node, THEIRS)
    assert [path.name for path in folder.iterdir()] == ["vllm.service"]


def test_a_text_that_the_service_may_have_written_is_not_installed(
    node: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "units"
    monkeypatch.setattr(systemd.Manager, "folder", lambda _: str(folder))
    folder.mkdir()
    path = folder / "vllm.service"
    one, two, evil = (OURS.format(name=name) for name in ("one", "two", "evil"))
    # As an older sparkops left it: without a record.
    path.write_text(one)
    write(node, two, scope="system")
    for check in (True, False):
        unit = write(node, evil, check, scope="system", known=True)
        assert (path.read_text(), unit.actions) == (two, [])
        (warning,) = unit.said()["warnings"]
        assert "vllm.service stays as it is" in warning
    for text in (one, two, two):
        unit = write(node, text, scope="system", known=True)
        assert (path.read_text(), "warnings" in unit.said()) == (text, False)
    assert (folder / "vllm.service.known").stat().st_mode & 0o777 == 0o644
    unit.remove()
    assert list(folder.iterdir()) == []
    assert write(node, one, scope="system", known=True).said()["warnings"]
    # A user's unit is that user's either way.
    write(node, evil, known=True, scope="user")
    assert path.read_text() == evil
    assert [one.name for one in folder.iterdir()] == ["vllm.service"]
