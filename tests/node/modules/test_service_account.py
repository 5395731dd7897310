from __future__ import annotations

import os
import pwd
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkops.node.api import Failure
from tests.node.conftest import Apply

ME = pwd.getpwuid(os.geteuid()).pw_name
OTHER, UID = "someone", 4242


@pytest.fixture
def someone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Another user of this machine, by its home."""
    home = tmp_path / "someone"
    home.mkdir()
    if os.geteuid() == 0:
        os.chown(home, UID, UID)
    real = pwd.getpwnam
    entry = pwd.struct_passwd((OTHER, "x", UID, UID, "", str(home), "/bin/sh"))
    monkeypatch.setattr(pwd, "getpwnam", lambda name: entry if name == OTHER else real(name))
    yield home


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A service with one release."""
    it = tmp_path / "home/releases/vllm"
    (it / "1").mkdir(parents=True)
    (it / "1/env").write_text("A=b\n")
    (it / "1/env").chmod(0o600)
    (it / "current").symlink_to("1")
    return it


def owners(folder: Path) -> set[int]:
    return {path.lstat().st_uid for path in (folder, *folder.rglob("*"))}


def words(folder: Path, **values: object) -> dict[str, object]:
    home = str(folder.parents[1])
    return {"user": OTHER, "login": ME, "home": home, "service": "vllm", "hand_over": True, **values}


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="files are given away by root alone")


@needs_root
def test_handing_over_and_back(apply: Apply, someone: Path, folder: Path, tmp_path: Path) -> None:
    foreign = tmp_path / "foreign"
    foreign.write_text("not of the service")
    (folder / "1/link").symlink_to(foreign)
    assert apply("service_account", **words(folder, hand_over=False)).state == "ok"
    assert apply("service_account", **words(folder), check=True).state == "changed"
    assert owners(folder) == {0}
    outcome = apply("service_account", **words(folder))
    assert (outcome.state, outcome.msg) == ("changed", f"owner {ME} -> {UID}")
    assert owners(folder) == {UID}
    assert foreign.stat().st_uid == 0
    assert (folder / "1/env").stat().st_mode & 0o777 == 0o600
    assert apply("service_account", **words(folder)).state == "ok"
    assert apply("service_account", **words(folder, user=ME)).state == "changed"
    assert owners(folder) == {0}


@needs_root
def test_what_is_another_s_in_there_stays_so(apply: Apply, someone: Path, folder: Path) -> None:
    """A hard link to a file of root's, say, which the login user has laid there."""
    for path in (folder, folder / "1", folder / "1/env"):
        os.chown(path, 1234, 1234)
    os.chown(folder / "current", 1234, 1234, follow_symlinks=False)
    (folder / "1/shadow").write_text("")
    apply("service_account", **words(folder))
    assert (folder / "1/shadow").stat().st_uid == 0
    assert (folder / "1/env").stat().st_uid == folder.stat().st_uid == UID


@needs_root
def test_the_first_release_has_a_folder_to_lie_in(apply: Apply, someone: Path, tmp_path: Path) -> None:
    folder = tmp_path / "home/releases/vllm"
    assert apply("service_account", **words(folder), check=True).state == "changed"
    assert not folder.exists()
    assert apply("service_account", **words(folder)).state == "changed"
    assert folder.stat().st_uid == UID
    assert apply("service_account", **words(folder)).state == "ok"


def test_the_login_user_makes_its_own(apply: Apply, tmp_path: Path) -> None:
    folder = tmp_path / "home/releases/vllm"
    assert apply("service_account", **words(folder, user=ME)).state == "ok"
    assert apply("service_account", **words(folder, user=ME, scope="user")).state == "ok"
    assert not folder.exists()


def test_users_that_will_not_do(apply: Apply, someone: Path, folder: Path, tmp_path: Path) -> None:
    for name in ("no-such-user", "a b; reboot", "", "\x00"):
        with pytest.raises(Failure, match="there is no user"):
            apply("service_account", **words(folder, user=name))
    with pytest.raises(Failure, match="needs systemd_scope: system"):
        apply("service_account", **words(folder, scope="user"))
    someone.rmdir()
    with pytest.raises(Failure, match="has no home of its own"):
        apply("service_account", **words(folder))
    with pytest.raises(Failure, match="must be letters"):
        apply("service_account", **words(folder, service="../x"))
