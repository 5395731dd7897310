from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sparkops.node.api import Failure, Outcome
from sparkops.recipes.load import Catalogue
from tests.node.index import Index, serving, wheel

Apply = Callable[..., Outcome]
MACHINE = os.uname().machine
PROGRAM = b"#!/bin/sh\necho uv 1.0\n" + b"#" * 600_000


@pytest.fixture
def index() -> Iterator[Index]:
    with serving() as index:
        yield index


@pytest.fixture
def args(index: Index, tmp_path: Path) -> dict[str, Any]:
    name, data = wheel("uv", "1.0", {"uv-1.0.data/scripts/uv": PROGRAM, "uv-1.0.data/scripts/uvx": "other"})
    digest = index.add("uv", name, data)
    return {
        "version": "1.0",
        "wheels": {MACHINE: {"file": name, "sha256": digest}, "vax": {"file": "x", "sha256": "y"}},
        "index_url": index.url,
        "dest": str(tmp_path / "tools" / "uv-1.0" / "uv"),
    }


@pytest.mark.parametrize("json", [True, False])
def test_installs_and_then_asks_nobody(apply: Apply, args: dict[str, Any], index: Index, node: Any, json: bool) -> None:
    index.json = json
    assert apply("uv", **args, check=True).state == "changed"
    assert not Path(args["dest"]).parent.exists()
    assert index.asked == []
    assert apply("uv", **args).state == "changed"
    program = Path(args["dest"])
    assert program.read_bytes() == PROGRAM
    assert program.stat().st_mode & 0o777 == 0o755
    assert sorted(path.name for path in program.parent.iterdir()) == ["uv", "uv.json"]
    done, total, unit, _ = node.moves[-1]
    assert (done, unit) == (total, "bytes")
    index.asked.clear()
    stat = program.stat()
    for check in (True, False):
        assert apply("uv", **args, check=check).state == "ok"
    assert index.asked == []
    assert (program.stat().st_mtime_ns, program.stat().st_ino) == (stat.st_mtime_ns, stat.st_ino)


@pytest.mark.parametrize("damage", ["cut", "removed", "mode", "note"])
def test_a_damaged_one_is_replaced(apply: Apply, args: dict[str, Any], damage: str) -> None:
    apply("uv", **args)
    program = Path(args["dest"])
    if damage == "cut":
        program.write_bytes(b"")
    elif damage == "removed":
        program.unlink()
    elif damage == "mode":
        program.chmod(0o644)
    else:
        program.with_name("uv.json").write_text("{")
    assert apply("uv", **args).state == "changed"
    assert subprocess.run([program], capture_output=True, text=True, check=True).stdout == "uv 1.0\n"


def test_another_pin_replaces_it(apply: Apply, args: dict[str, Any], index: Index) -> None:
    apply("uv", **args)
    name, data = wheel("uv", "2.0", {"uv-2.0.data/scripts/uv": "new"})
    args["wheels"] = {MACHINE: {"file": name, "sha256": index.add("uv", name, data)}}
    assert apply("uv", **args).state == "changed"
    assert Path(args["dest"]).read_text() == "new"


def test_another_hash_is_never_used(apply: Apply, args: dict[str, Any], index: Index, tmp_path: Path) -> None:
    expected = args["wheels"][MACHINE]["sha256"]
    name, data = wheel("uv", "1.0", {"uv-1.0.data/scripts/uv": "evil"})
    found = index.add("uv", name, data)
    with pytest.raises(Failure) as caught:
        apply("uv", **args)
    for text in (expected, found, f"{index.url.replace('/simple', '/files')}/uv/{name}"):
        assert text in caught.value.msg
    assert not (tmp_path / "tools").exists()


def test_failures_name_the_cause(apply: Apply, args: dict[str, Any], index: Index, tmp_path: Path) -> None:
    def failure(**changed: Any) -> str:
        with pytest.raises(Failure) as caught:
            apply("uv", **{**args, **changed})
        return caught.value.msg

    assert "pinned for" in failure(wheels={"vax": {"file": "x", "sha256": "y"}})
    assert "(pinned: vax)" in failure(wheels={"vax": {"file": "x", "sha256": "y"}})
    assert "has no sha256" in failure(wheels={MACHINE: {"file": "x"}})
    assert "has no uv-9.whl" in failure(wheels={MACHINE: {"file": "uv-9.whl", "sha256": "0"}})
    assert f"cannot fetch {index.url}/nothing/uv/: HTTP Error 404" in failure(index_url=f"{index.url}/nothing")
    assert "Connection refused" in failure(index_url="http://127.0.0.1:1/simple")
    assert "cannot fetch nonsense/uv/" in failure(index_url="nonsense")
    (tmp_path / "file").touch()
    assert "cannot make" in failure(dest=str(tmp_path / "file" / "uv"))
    index.short = True
    assert "ended after" in failure() or "IncompleteRead" in failure()
    index.short = False
    digest = index.add("uv", "empty.whl", b"no zip")
    assert "is not a wheel" in failure(wheels={MACHINE: {"file": "empty.whl", "sha256": digest}})
    name, data = wheel("uv", "3.0", {})
    assert "has no program uv" in failure(wheels={MACHINE: {"file": name, "sha256": index.add("uv", name, data)}})
    assert not (tmp_path / "tools").exists()


def test_credentials_work_and_are_never_shown(apply: Apply, args: dict[str, Any], index: Index) -> None:
    index.login = "me:s3cr:t@/"
    url = index.url.replace("://", "://me:s3cr%3At%40%2F@")
    with pytest.raises(Failure, match="401"):
        apply("uv", **args)
    with pytest.raises(Failure) as caught:
        apply("uv", **{**args, "index_url": url.replace("/simple", "/none")})
    assert "://****@127.0.0.1" in caught.value.msg
    assert "s3cr" not in f"{caught.value.msg}{caught.value.result}"
    done = apply("uv", **{**args, "index_url": url})
    assert done.state == "changed"
    assert "s3cr" not in f"{done.msg}{done.result}"
    assert "s3cr" not in Path(args["dest"] + ".json").read_text()


def test_a_mirror_on_disk(apply: Apply, args: dict[str, Any], index: Index, tmp_path: Path) -> None:
    [(name, data)] = index.files["uv"].items()
    folder = tmp_path / "mirror" / "uv"
    folder.mkdir(parents=True)
    (folder / name).write_bytes(data)
    (folder / "index.html").write_text(f'<a href="{name}">{name}</a>')
    assert apply("uv", **{**args, "index_url": (tmp_path / "mirror").as_uri()}).state == "changed"


@pytest.mark.network
def test_the_pinned_one_installs_and_runs(apply: Apply, tmp_path: Path) -> None:
    tool = Catalogue().tool("uv")
    wheels = {machine: {"file": wheel.file, "sha256": wheel.sha256} for machine, wheel in tool.wheels.items()}
    dest = tmp_path / "uv"
    assert apply("uv", version=tool.version, wheels=wheels, dest=str(dest)).state == "changed"
    said = subprocess.run([dest, "--version"], capture_output=True, text=True, check=True).stdout
    assert said.startswith(f"uv {tool.version} ")
