from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from sparkops.node import files
from sparkops.node.api import Failure, Outcome, Patch

Apply = Callable[..., Outcome]

BEFORE = b"import os\n\n\nclass A:\n    tower = build()\n\n\nclass B:\n    tower = build()\n"
AFTER = BEFORE.replace(b"class B:\n    tower = build()\n", b"class B:\n    tower = None\n")
DIFF = "--- a\n+++ b\n@@ -8,2 +8,2 @@\n class B:\n-    tower = build()\n+    tower = None\n"
OTHER = b"# 2.0\n" + BEFORE
OTHER_AFTER = b"# 2.0\n" + AFTER


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


PATCH = Patch(
    "guard",
    "pkg/model.py",
    [
        {"engine": "pkg 1.0", "before": sha(BEFORE), "after": sha(AFTER)},
        {"engine": "pkg 2.0", "before": sha(OTHER), "after": sha(OTHER_AFTER)},
    ],
    DIFF,
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A venv's site-packages whose file is a hard link into uv's cache, as another venv's is."""
    root = tmp_path / "venv" / "lib" / "python3.12" / "site-packages"
    (root / "pkg" / "__pycache__").mkdir(parents=True)
    cached = tmp_path / "cache.py"
    cached.write_bytes(BEFORE)
    cached.chmod(0o640)
    os.link(cached, root / "pkg" / "model.py")
    os.link(cached, tmp_path / "other-venv.py")
    for name in ("model.cpython-312.pyc", "model.cpython-312.opt-1.pyc", "model2.cpython-312.pyc"):
        (root / "pkg" / "__pycache__" / name).write_bytes(b"compiled")
    return root


def listing(folder: Path) -> dict[str, tuple[bytes, int, int, int]]:
    found = {}
    for path in sorted(folder.rglob("*")):
        stat = path.lstat()
        content = path.read_bytes() if path.is_file() else b""
        found[str(path.relative_to(folder))] = (content, stat.st_mode, stat.st_mtime_ns, stat.st_ino)
    return found


def test_patches_once_and_leaves_the_cache_alone(apply: Apply, root: Path, tmp_path: Path) -> None:
    file, orig = root / "pkg/model.py", root / "pkg/model.py.orig"
    done = apply("pinned_patch", name=PATCH, root=str(root))
    assert done.state == "changed"
    assert done.result["sha256"] == sha(AFTER)
    assert done.result["engine"] == "pkg 1.0"
    assert "-    tower = build()\n+    tower = None\n" in (done.diff or "")
    assert file.read_bytes() == AFTER
    assert (
        orig.read_bytes() == (tmp_path / "cache.py").read_bytes() == (tmp_path / "other-venv.py").read_bytes() == BEFORE
    )
    assert oct(file.stat().st_mode) == oct(orig.stat().st_mode) == oct(0o100640)
    assert orig.stat().st_ino != (tmp_path / "cache.py").stat().st_ino
    assert [path.name for path in (root / "pkg/__pycache__").iterdir()] == ["model2.cpython-312.pyc"]

    before = listing(tmp_path)
    assert apply("pinned_patch", name=PATCH, root=str(root)).state == "ok"
    assert listing(tmp_path) == before


def test_check_mode_touches_nothing(apply: Apply, root: Path, tmp_path: Path) -> None:
    before = listing(tmp_path)
    done = apply("pinned_patch", name=PATCH, root=str(root), check=True)
    assert (done.state, done.diff) == ("changed", files.diff(BEFORE, AFTER, str(root / "pkg/model.py")))
    assert listing(tmp_path) == before
    # What an earlier task would build cannot be known yet.
    assert apply("pinned_patch", name=PATCH, root=str(tmp_path / "no"), check=True).state == "unknown"


def test_another_version_by_its_own_hashes(apply: Apply, root: Path) -> None:
    (root / "pkg/model.py").unlink()
    (root / "pkg/model.py").write_bytes(OTHER)
    assert apply("pinned_patch", name=PATCH, root=str(root)).result["engine"] == "pkg 2.0"
    assert (root / "pkg/model.py").read_bytes() == OTHER_AFTER


@pytest.mark.parametrize("backup", [True, False], ids=["from .orig", "by undoing the diff"])
def test_absent_restores(apply: Apply, root: Path, tmp_path: Path, backup: bool) -> None:
    assert apply("pinned_patch", name=PATCH, root=str(root), state="absent").state == "ok"
    apply("pinned_patch", name=PATCH, root=str(root))
    orig = root / "pkg/model.py.orig"
    if not backup:
        orig.unlink()
    before = listing(tmp_path)
    assert apply("pinned_patch", name=PATCH, root=str(root), state="absent", check=True).state == "changed"
    assert listing(tmp_path) == before
    assert apply("pinned_patch", name=PATCH, root=str(root), state="absent").state == "changed"
    assert (root / "pkg/model.py").read_bytes() == BEFORE
    assert orig.exists() == backup
    assert apply("pinned_patch", name=PATCH, root=str(root), state="absent").state == "ok"
    # And on again: the backup that is there is used, not made anew.
    made = orig.stat().st_mtime_ns if backup else 0
    assert apply("pinned_patch", name=PATCH, root=str(root)).state == "changed"
    assert not backup or orig.stat().st_mtime_ns == made


def test_a_broken_backup_is_not_restored_from(apply: Apply, root: Path) -> None:
    apply("pinned_patch", name=PATCH, root=str(root))
    orig = root / "pkg/model.py.orig"
    orig.write_bytes(b"not it")
    apply("pinned_patch", name=PATCH, root=str(root), state="absent")
    assert (root / "pkg/model.py").read_bytes() == BEFORE
    assert orig.read_bytes() == b"not it"
    # ... nor overwritten.
    with pytest.raises(Failure, match=r"model\.py\.orig is there and is not the pristine file"):
        apply("pinned_patch", name=PATCH, root=str(root))
    assert (root / "pkg/model.py").read_bytes() == BEFORE
    assert orig.read_bytes() == b"not it"


@pytest.mark.parametrize("state", ["present", "absent"])
@pytest.mark.parametrize(
    ("content", "reject"),
    [
        (BEFORE.replace(b"class B", b"class C"), "hunk 1 of 1 (line 8) does not apply"),
        (AFTER + b"# mine\n", "hunk 1 of 1 (line 8) is already in the file"),
        (BEFORE + b"# mine\n", "hunk 1 of 1 (line 8) applies"),
        (b"", "does not apply"),
        (b"\xff\xfe\x00binary", "does not apply"),
    ],
)
def test_an_edited_file_fails_and_keeps_every_byte(
    apply: Apply, root: Path, tmp_path: Path, content: bytes, reject: str, state: str
) -> None:
    file = root / "pkg/model.py"
    file.unlink()
    file.write_bytes(content)
    before = listing(tmp_path)
    for check in (True, False):
        with pytest.raises(Failure, match="neither of the files") as caught:
            apply("pinned_patch", name=PATCH, root=str(root), state=state, check=check)
        assert reject in caught.value.msg
        assert reject in caught.value.result["reject"]
        assert sha(content) in caught.value.msg
    assert listing(tmp_path) == before


def test_the_edit_is_shown_where_the_backup_tells(apply: Apply, root: Path) -> None:
    apply("pinned_patch", name=PATCH, root=str(root))
    (root / "pkg/model.py").write_bytes(AFTER.replace(b"import os", b"import os  # mine"))
    with pytest.raises(Failure) as caught:
        apply("pinned_patch", name=PATCH, root=str(root))
    assert "-import os\n+import os  # mine\n" in caught.value.result["reject"]


def test_a_result_of_another_hash_is_never_written(apply: Apply, root: Path, tmp_path: Path) -> None:
    wrong = Patch("guard", PATCH.file, [{"engine": "e", "before": sha(BEFORE), "after": "0" * 64}], DIFF)
    before = listing(tmp_path)
    with pytest.raises(Failure, match="does not lead to the declared file"):
        apply("pinned_patch", name=wrong, root=str(root))
    broken = Patch("guard", PATCH.file, PATCH.versions, "@@ nonsense")
    with pytest.raises(Failure, match="is broken: line 1"):
        apply("pinned_patch", name=broken, root=str(root))
    assert listing(tmp_path) == before


def test_roots(apply: Apply, root: Path, tmp_path: Path) -> None:
    pattern = str(tmp_path / "venv/lib/python3*/site-packages")
    assert apply("pinned_patch", name=PATCH, root=pattern).state == "changed"
    with pytest.raises(Failure, match="there is no folder"):
        apply("pinned_patch", name=PATCH, root=str(tmp_path / "nowhere"))
    with pytest.raises(Failure, match=r"there is no .*pkg/model\.py, which the patch guard changes"):
        apply("pinned_patch", name=PATCH, root=str(tmp_path))
    (tmp_path / "venv/lib/python3.13/site-packages").mkdir(parents=True)
    with pytest.raises(Failure, match="means 2 folders"):
        apply("pinned_patch", name=PATCH, root=pattern)


def test_hostile_names_are_only_names(apply: Apply, root: Path, tmp_path: Path) -> None:
    hostile = tmp_path / "a [b] ; $(touch x) *" / "site-packages"
    (root.parent).rename(hostile.parent)
    assert apply("pinned_patch", name=PATCH, root=str(hostile)).state == "changed"
    assert (hostile / "pkg/model.py").read_bytes() == AFTER


def test_a_link_is_replaced_not_followed(apply: Apply, root: Path, tmp_path: Path) -> None:
    """uv's symlink mode: the file in the cache must stay pristine."""
    file = root / "pkg/model.py"
    file.unlink()
    file.symlink_to(tmp_path / "cache.py")
    assert apply("pinned_patch", name=PATCH, root=str(root)).state == "changed"
    assert file.read_bytes() == AFTER
    assert not file.is_symlink()
    assert file.stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "cache.py").read_bytes() == BEFORE


def test_killed_before_the_rename_it_starts_over(apply: Apply, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = files.write

    def killed(path: str, data: bytes, mode: int | None = None) -> None:
        if not path.endswith(".orig"):
            raise KeyboardInterrupt
        written(path, data, mode)

    monkeypatch.setattr(files, "write", killed)
    with pytest.raises(KeyboardInterrupt):
        apply("pinned_patch", name=PATCH, root=str(root))
    assert (root / "pkg/model.py").read_bytes() == BEFORE
    monkeypatch.undo()
    assert apply("pinned_patch", name=PATCH, root=str(root)).state == "changed"
    assert (root / "pkg/model.py.orig").read_bytes() == BEFORE
