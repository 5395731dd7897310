from __future__ import annotations

import mmap
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sparkops.node import pagecache
from sparkops.node.api import Failure

MIB = 1 << 20


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Path]:
    """Two files in a tree, a hard link and links in and out of it; on a disk, as tmpfs has no other place for pages."""
    kind = subprocess.check_output(["stat", "-f", "-c", "%T", str(tmp_path)], text=True).strip()
    if kind in ("tmpfs", "ramfs"):
        pytest.fail(f"{tmp_path} is on {kind}: set TMPDIR to a folder on a disk")
    (tmp_path / "t/sub").mkdir(parents=True)
    (tmp_path / "t/a").write_bytes(os.urandom(8 * MIB))
    (tmp_path / "t/sub/b b\n").write_bytes(os.urandom(2 * MIB))
    (tmp_path / "t/hard").hardlink_to(tmp_path / "t/a")
    (tmp_path / "out").write_bytes(os.urandom(MIB))
    (tmp_path / "t/out").symlink_to("../out")
    (tmp_path / "t/up").symlink_to("..")
    os.mkfifo(tmp_path / "t/pipe")
    yield tmp_path / "t"


def fincore(path: Path) -> int:
    return int(subprocess.check_output(["fincore", "-b", "-n", "-o", "RES", str(path)], text=True))


def test_a_tree_is_purged_and_the_second_time_ok(tree: Path, apply: Any) -> None:
    checked = apply("page_cache", check=True, path=str(tree))
    assert (checked.state, checked.result["resident"], checked.result["files"]) == ("changed", 10 * MIB, 2)
    assert fincore(tree / "a") == 8 * MIB
    done = apply("page_cache", path=str(tree))
    assert (done.state, done.result["resident"], done.result["resident_after"]) == ("changed", 10 * MIB, 0)
    assert fincore(tree / "a") == fincore(tree / "sub/b b\n") == 0
    assert fincore(tree.parent / "out") == MIB, "a link out of the tree was followed"
    assert "MemFree" in done.msg and "MemAvailable" in done.msg
    assert {"mem_free", "mem_free_after", "mem_available", "mem_available_after"} <= set(done.result)
    for check in (False, True):
        again = apply("page_cache", check=check, path=str(tree))
        assert (again.state, again.result["resident"]) == ("ok", 0)


def test_one_file_and_a_link_to_the_tree(tree: Path, apply: Any) -> None:
    (tree.parent / "link").symlink_to(tree)
    assert apply("page_cache", path=str(tree / "a")).result["resident"] == 8 * MIB
    assert apply("page_cache", path=str(tree.parent / "link")).result["resident"] == 2 * MIB


def test_who_maps_what_stays_is_named(tree: Path, apply: Any) -> None:
    with (tree / "a").open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as pages:
        assert pages[::4096]
        done = apply("page_cache", path=str(tree))
        assert done.state == "changed"
        assert done.result["resident_after"] == 8 * MIB
        [held] = done.result["held"]
        assert held["path"] in (str(tree / "a"), str(tree / "hard"))
        assert held["by"][0]["pid"] == os.getpid()
        assert f"pid {os.getpid()} (" in done.msg
        again = apply("page_cache", path=str(tree))
        assert again.state == "ok", "what can't be purged is no change"
        assert again.result["held"]


def test_a_sparse_giant_is_quick_and_both_ways_of_measuring_agree(tmp_path: Path) -> None:
    path = tmp_path / "w"
    path.write_bytes(os.urandom(MIB))
    os.truncate(path, 3 << 30)
    fd = os.open(path, os.O_RDONLY)
    try:
        assert pagecache.mincore(fd) == MIB
        assert pagecache.cachestat(fd) in (MIB, None)
    finally:
        os.close(fd)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_a_file_of_an_overlay_has_its_pages_below(tmp_path: Path) -> None:
    for name in ("low", "up", "work", "all"):
        (tmp_path / name).mkdir()
    options = "lowerdir=low,upperdir=up,workdir=work"
    subprocess.run(["mount", "-t", "overlay", "-o", options, "x", "all"], cwd=tmp_path, check=True)
    try:
        (tmp_path / "all/a").write_bytes(os.urandom(MIB))
        assert pagecache.resident(str(tmp_path / "all/a")) == MIB
        pagecache.evict(str(tmp_path / "all/a"))
        assert pagecache.resident(str(tmp_path / "all/a")) == 0
    finally:
        subprocess.run(["umount", "all"], cwd=tmp_path, check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_s_file_is_not_measured_rather_than_wrong() -> None:
    code = """if True:
        import ctypes, os, sys
        from sparkops.node import pagecache
        os.setgroups([]), os.setgid(65534), os.setuid(65534)
        print(pagecache.resident(sys.argv[1]))
    """
    # Where everybody may look, on a disk.
    with tempfile.NamedTemporaryFile(dir="/var/tmp") as file:
        file.write(b"x" * MIB)
        file.flush()
        os.fchmod(file.fileno(), 0o644)
        assert subprocess.check_output([sys.executable, "-c", code, file.name], text=True) == "None\n"


def test_not_measured_is_said_and_still_purged(tree: Path, apply: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pagecache, "resident", lambda _: None)
    assert apply("page_cache", check=True, path=str(tree)).state == "unknown"
    done = apply("page_cache", path=str(tree))
    assert (done.state, done.result["resident"]) == ("changed", None)
    assert "not measured" in done.msg
    assert fincore(tree / "a") == 0


def test_bad_ones(tmp_path: Path, apply: Any) -> None:
    with pytest.raises(Failure, match="gone does not exist"):
        apply("page_cache", path=f"{tmp_path}/gone")
    with pytest.raises(Failure, match="needs path"):
        apply("page_cache")


def test_the_command_of_a_process_ends_before_its_options() -> None:
    argv = [sys.executable, "-c", "print(flush=True); input()", "--api-key", "hush"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout and process.stdout.readline()
        assert pagecache.command(process.pid) == sys.executable
        process.communicate(b"\n")


@pytest.mark.parametrize("cached", [1 << 20, 4 << 30])
def test_scope_all(tmp_path: Path, apply: Any, monkeypatch: pytest.MonkeyPatch, cached: int) -> None:
    from sparkops.node.modules import page_cache

    drop = tmp_path / "drop_caches"
    monkeypatch.setattr(page_cache, "DROP_CACHES", str(drop))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(page_cache, "meminfo", lambda: {"Cached": cached, "Shmem": 0, "Mapped": 0, "MemFree": 1})
    wanted = "changed" if cached > MIB else "ok"
    assert apply("page_cache", check=True, scope="all").state == wanted
    assert not drop.exists()
    assert apply("page_cache", scope="all").state == wanted
    assert drop.exists() == (wanted == "changed")


def test_scope_all_needs_root(apply: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(Failure, match="become: true"):
        apply("page_cache", scope="all")
