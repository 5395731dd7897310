from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkops.node import files
from sparkops.node.api import Failure
from sparkops.node.modes import mode_bits


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_a_new_file_has_the_umask_s_mode_and_no_temp_file_stays(tmp_path: Path) -> None:
    files.write(str(tmp_path / "a"), b"x")
    assert (tmp_path / "a").read_bytes() == b"x"
    assert mode(tmp_path / "a") == 0o644
    assert names(tmp_path) == ["a"]


def test_a_new_file_can_be_private(tmp_path: Path) -> None:
    files.write(str(tmp_path / "a"), b"x", 0o600)
    files.write(str(tmp_path / "b"), b"x", 0o2755)
    assert (mode(tmp_path / "a"), mode(tmp_path / "b")) == (0o600, 0o2755)


def test_a_replaced_file_keeps_its_mode_and_is_another_inode(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    path.chmod(0o4751)
    (tmp_path / "hard").hardlink_to(path)
    files.write(str(path), b"new")
    assert mode(path) == 0o4751
    assert (tmp_path / "hard").read_bytes() == b"old"


def test_a_link_is_replaced_and_its_target_left(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"keep")
    (tmp_path / "link").symlink_to("target")
    files.write(str(tmp_path / "link"), b"new")
    assert not (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"keep"


def test_content_with_another_digest_never_arrives(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with pytest.raises(Failure, match="sha256"):
        files.write_pieces(str(path), [b"ne", b"w"], digest="0" * 64)
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize("path", ["missing/a", "file/a"])
def test_a_place_that_can_t_be_written_is_named(tmp_path: Path, path: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Failure, match=f"cannot write .*{path}"):
        files.write(str(tmp_path / path), b"")


def test_unknown_owner_is_a_failure_that_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="no user 'nobody-here'"):
        files.write(str(tmp_path / "a"), b"", owner="nobody-here")
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("text", "now", "folder", "wanted"),
    [
        ("0644", 0, False, 0o644),
        ("755", 0, False, 0o755),
        ("1777", 0, True, 0o1777),
        ("u=rwX,go=rX", 0o600, False, 0o644),
        ("u=rwX,go=rX", 0o700, False, 0o755),
        ("u=rwX,go=rX", 0o600, True, 0o755),
        ("u+x", 0o644, False, 0o744),
        ("+x", 0o644, False, 0o755),
        ("+w", 0o444, False, 0o644),
        ("a-x", 0o755, False, 0o644),
        ("go=", 0o755, False, 0o700),
        ("g=u", 0o740, False, 0o770),
        ("o=r-w", 0o776, False, 0o774),
        ("ug+s", 0o755, False, 0o6755),
        ("+t", 0o777, True, 0o1777),
        ("u=rw+x", 0o000, False, 0o700),
    ],
)
def test_modes(text: str, now: int, folder: bool, wanted: int) -> None:
    assert mode_bits(text, now, folder, 0o022) == wanted


@pytest.mark.parametrize("text", ["", "preserve", "0999", "77777", "u", "z+x", "u+q", "u=rw,,", "u=r w"])
def test_bad_modes_say_how_to_write_one(text: str) -> None:
    with pytest.raises(Failure, match=r'neither octal \("0644"\)'):
        mode_bits(text, 0, False, 0o022)


def test_attributes_are_reported_and_in_check_mode_left(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.touch(0o644)
    assert files.set_attributes(str(path), "0600", None, None, check=True) == ["mode 0644 -> 0600"]
    assert mode(path) == 0o644
    assert files.set_attributes(str(path), "0600", None, None, check=False) == ["mode 0644 -> 0600"]
    assert mode(path) == 0o600
    assert files.set_attributes(str(path), "0600", str(os.geteuid()), None, check=False) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_chown_does_not_lose_setuid(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.touch()
    path.chmod(0o4755)
    assert files.set_attributes(str(path), "4755", "nobody", None, check=False) == ["owner root -> nobody"]
    assert mode(path) == 0o4755


def test_diffs() -> None:
    assert files.diff("a\n", "a\n", "f") == ""
    assert files.diff("a\nb", "a\nc\n", "f").splitlines() == [
        "--- before: f",
        "+++ after: f",
        "@@ -1,2 +1,2 @@",
        " a",
        "-b",
        "\\ No newline at end of file",
        "+c",
    ]
    assert files.diff("", "a\fb\rc\n", "f").count("\n+") == 2
    assert files.diff(b"a", b"\0", "f") == "Binary files differ: f (1 -> 1 bytes)\n"
    assert files.diff(b"\xff", b"a", "f").startswith("Binary")
    assert "too large" in files.diff("", "a\n" * 100_000, "f")


def test_a_large_file_goes_to_the_disk_while_it_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "SYNC_EVERY", 1000)
    synced: list[int] = []
    monkeypatch.setattr(os, "fdatasync", lambda fd: synced.append(os.fstat(fd).st_size))

    def pieces() -> Iterator[bytes]:
        for _ in range(50):
            yield b"a" * 10_000
            time.sleep(0.002)

    files.write_pieces(str(tmp_path / "a"), pieces())
    assert len(synced) > 1 and synced[0] < 500_000
    assert (tmp_path / "a").stat().st_size == 500_000
    files.write(str(tmp_path / "small"), b"a" * 999)
    assert (tmp_path / "small").stat().st_size == 999


def test_a_disk_that_fails_meanwhile_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(fd: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(files, "SYNC_EVERY", 10)
    monkeypatch.setattr(os, "fdatasync", fails)
    (tmp_path / "a").write_text("old")
    with pytest.raises(Failure, match="Input/output error"):
        files.write(str(tmp_path / "a"), b"new" * 10)
    assert (tmp_path / "a").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_large_file_is_written_where_no_thread_can_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(files, "SYNC_EVERY", 10)
    monkeypatch.setattr("_thread.start_new_thread", none_left)
    files.write(str(tmp_path / "a"), b"new" * 10)
    assert (tmp_path / "a").read_bytes() == b"new" * 10
