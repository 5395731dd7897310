from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from sparkops.errors import InputError
from sparkops.recipes import locking
from sparkops.recipes.load import SHIPPED, Catalogue
from sparkops.recipes.locking import Resolution, compile_words, differences, lock_engine, pins, resolve
from sparkops.recipes.schema import Engine
from tests.recipes.wheelfile import INDEX

HOW = Resolution(None, None, INDEX)
Resolve = Callable[[Engine, str, str, Resolution], str]


def lock(name: str, *others: str) -> str:
    return "".join(f"{pin} \\\n    --hash=sha256:{'0' * 64}\n" for pin in (name, *others))


def answers(monkeypatch: pytest.MonkeyPatch, **texts: str) -> list[tuple[str, str]]:
    """uv's answers by architecture; what was asked is in the result."""
    asked: list[tuple[str, str]] = []

    def resolve(engine: Engine, machine: str, python: str, how: Resolution) -> str:
        asked.append((machine, python))
        return texts[machine]

    monkeypatch.setattr(locking, "resolve", resolve)
    return asked


def test_the_words_for_uv() -> None:
    words = compile_words("aarch64", "3.12", Resolution("3.12", "2026-07-28", "https://index/simple"))
    assert words[:3] == ["pip", "compile", "-"]
    pairs = dict(pairwise(words))
    assert pairs["--python-platform"] == "aarch64-manylinux_2_39"
    assert pairs["--exclude-newer"] == "2026-07-28"
    assert pairs["--default-index"] == "https://index/simple"
    assert {"--generate-hashes", "--no-config", "--no-emit-index-url", "--no-header"} <= set(words)
    assert "--exclude-newer" not in compile_words("aarch64", "3.12", HOW)


def test_differences() -> None:
    before, after = pins(lock("a==1", "b==1", "c==1")), pins(lock("a==1", "b==2", "d==1"))
    assert differences(before, after) == ["b 1 -> 2", "- c 1", "+ d 1"]


def test_a_new_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = answers(monkeypatch, aarch64=lock("vllm==0.30.0"), x86_64=lock("vllm==0.30.0"))
    done = lock_engine(Catalogue([tmp_path]), tmp_path / "engines", "vllm-0.30.0", [], HOW)
    assert asked == [("aarch64", "3.12"), ("x86_64", "3.12")]
    assert [(one.file, one.machines, one.packages, one.differ) for one in done] == [
        (str(tmp_path / "engines" / "vllm-0.30.0.lock"), ["aarch64", "x86_64"], 1, None)
    ]
    engine = Catalogue([tmp_path]).engine("vllm-0.30.0")
    assert (engine.python, engine.expect_cuda, set(engine.locks)) == ("3.12", None, {"aarch64", "x86_64"})
    assert sorted(path.name for path in (tmp_path / "engines").iterdir()) == ["vllm-0.30.0.lock", "vllm-0.30.0.yml"]


def test_another_platform_keeps_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers(monkeypatch, x86_64=lock("vllm==0.24.0", "only-there==1"))
    done = lock_engine(Catalogue([tmp_path]), tmp_path / "engines", "vllm-0.24.0", ["x86_64"], HOW)
    engine = Catalogue([tmp_path]).engine("vllm-0.24.0")
    shipped = (SHIPPED / "engines" / "vllm-0.24.0.lock").read_text()
    assert Path(engine.locks["aarch64"]).read_text() == shipped
    assert Path(engine.locks["x86_64"]).read_text() == lock("vllm==0.24.0", "only-there==1")
    assert {Path(path).parent for path in engine.locks.values()} == {tmp_path / "engines"}
    assert [(one.machines, one.packages) for one in done] == [(["aarch64"], 189), (["x86_64"], 2)]
    assert "+ only-there 1" in (done[1].differ or [])


def test_another_python_is_for_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = answers(monkeypatch, aarch64=lock("a==1"), x86_64=lock("b==1"))
    other = Resolution("3.13", None, INDEX)
    lock_engine(Catalogue([tmp_path]), tmp_path / "engines", "vllm-0.24.0", ["x86_64"], other)
    assert sorted(asked) == [("aarch64", "3.13"), ("x86_64", "3.13")]
    assert Catalogue([tmp_path]).engine("vllm-0.24.0").python == "3.13"
    # The engine's file is the user's from now on.
    with pytest.raises(InputError, match=r"it says Python 3\.13, not 3\.12"):
        lock_engine(Catalogue([tmp_path]), tmp_path / "engines", "vllm-0.24.0", [], Resolution("3.12", None, INDEX))


def own_engine(folder: Path, locks: str) -> Path:
    (folder / "engines").mkdir()
    (folder / "engines" / "mine.lock").write_text(lock("vllm==0.24.0", "torch==2.10.0"))
    file = folder / "engines" / "vllm-0.24.0.yml"
    file.write_text(
        f"# mine\nname: vllm\nversion: 0.24.0\npython: '3.12'\nexpect_cuda: null\nlocks: {locks}\nprobe: [bin/vllm]\n"
    )
    return file


def test_a_file_of_the_user_s_says_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = own_engine(tmp_path, "{aarch64: mine.lock, x86_64: mine.lock}")
    before = file.read_text()
    new = lock("vllm==0.24.0", "torch==2.11.0")
    answers(monkeypatch, aarch64=new, x86_64=new)
    (done,) = lock_engine(Catalogue([tmp_path]), tmp_path / "engines", "vllm-0.24.0", [], HOW)
    assert (tmp_path / "engines" / "mine.lock").read_text() == new
    assert done.differ == ["torch 2.10.0 -> 2.11.0"]
    assert file.read_text() == before


@pytest.mark.parametrize(
    ("locks", "machines", "message", "place"),
    [
        ("{aarch64: mine.lock}", ["x86_64"], "it names no lock for x86_64", "6:8"),
        ("{aarch64: mine.lock, x86_64: mine.lock}", [], "need different locks now, and share mine.lock", "6:37"),
    ],
)
def test_a_file_that_names_other_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, locks: str, machines: list[str], message: str, place: str
) -> None:
    file = own_engine(tmp_path, locks)
    answers(monkeypatch, aarch64=lock("a==1"), x86_64=lock("b==1"))
    with pytest.raises(InputError, match=message) as caught:
        lock_engine(Catalogue([tmp_path]), tmp_path / "engines", "vllm-0.24.0", machines, HOW)
    assert str(caught.value.where) == f"{file}:{place}"
    assert (tmp_path / "engines" / "mine.lock").read_text() == lock("vllm==0.24.0", "torch==2.10.0")


def test_a_lock_that_is_not_there_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = own_engine(tmp_path, "{aarch64: mine.lock, x86_64: other.lock}")
    answers(monkeypatch, x86_64=lock("vllm==0.24.0"))
    with pytest.raises(InputError, match=r"no lock .*other\.lock"):
        Catalogue([tmp_path]).engine("vllm-0.24.0")
    (kept, made) = lock_engine(Catalogue([tmp_path]), file.parent, "vllm-0.24.0", ["x86_64"], HOW)
    assert (kept.differ, made.machines, made.differ) == ([], ["x86_64"], None)
    assert Catalogue([tmp_path]).engine("vllm-0.24.0").lock("x86_64") == str(file.with_name("other.lock"))


def test_overrides_and_files_come_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = own_engine(tmp_path, "{x86_64: mine.lock}")
    more = {"overrides": ["torch==2.11.0"], "files": {"a.dist-info/METADATA": "Name: a\nVersion: '1'\n"}}
    theirs.write_text(theirs.read_text() + yaml.safe_dump(more))
    answers(monkeypatch, x86_64=lock("vllm==0.24.0"))
    lock_engine(Catalogue([tmp_path]), tmp_path / "project" / "engines", "vllm-0.24.0", [], HOW)
    engine = Catalogue([tmp_path / "project"]).engine("vllm-0.24.0")
    assert (engine.overrides, engine.files, engine.probe) == (more["overrides"], more["files"], ["bin/vllm"])


@pytest.mark.network
def test_an_override_wins(tmp_path: Path) -> None:
    overridden = Engine(
        name="jinja2",
        version="3.1.6",
        python=None,
        expect_cuda=None,
        locks={},
        probe=[],
        overrides=["markupsafe==2.1.5"],
    )
    text = resolve(overridden, "x86_64", "3.12", Resolution(None, None, INDEX))
    assert pins(text) == {"jinja2": "3.1.6", "markupsafe": "2.1.5"}


@pytest.mark.parametrize("name", ["vllm", "vllm-", "-0.24.0", "vllm-x", "../x-1", "a b-1", "x-1 --index-url=y"])
def test_names(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="is not NAME-VERSION"):
        lock_engine(Catalogue(), tmp_path / "engines", name, [], HOW)
    assert not (tmp_path / "engines").exists()


def test_without_uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match="uv, which is not installed here"):
        lock_engine(Catalogue(), tmp_path / "engines", "vllm-0.24.0", ["x86_64"], HOW)
    assert not (tmp_path / "engines").exists()


@pytest.mark.network
def test_the_shipped_lock_comes_out_again(tmp_path: Path) -> None:
    how = Resolution(None, "2026-07-28T00:00:00Z", INDEX)
    (done,) = lock_engine(Catalogue(), tmp_path / "engines", "vllm-0.24.0", ["aarch64"], how)
    assert (done.machines, done.differ) == (["aarch64", "x86_64"], [])
    assert Path(done.file).read_bytes() == (SHIPPED / "engines" / "vllm-0.24.0.lock").read_bytes()


@pytest.mark.network
def test_a_version_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"uv could not resolve typing_extensions==999.0 for x86_64, Python 3.12"):
        lock_engine(Catalogue(), tmp_path / "engines", "typing_extensions-999.0", ["x86_64"], HOW)
    assert not (tmp_path / "engines").exists()
