"""Real uv, wheels made on the spot, an index on loopback."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sparkops.node.api import Failure, Outcome, Patch, Source
from sparkops.node.jobs import Job
from sparkops.node.modules import python_venv
from sparkops.node.runtime import LocalNode
from sparkops.node.venv import Wanted
from tests.node.index import Index, serving, wheel

Apply = Callable[..., Outcome]

MODEL = "def main():\n    print('stock')\n"
GUARDED = MODEL.replace("stock", "guarded")
TORCH = "from typing import Optional\n__version__ = '2.11.0+cu130'\ncuda: Optional[str] = '13.0'\nraise SystemExit\n"
DIFF = "@@ -1,2 +1,2 @@\n def main():\n-    print('stock')\n+    print('guarded')\n"


def sha(text: str | bytes) -> str:
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


PATCH = Patch("guard", "engine/model.py", [{"engine": "engine 1.0", "before": sha(MODEL), "after": sha(GUARDED)}], DIFF)


@pytest.fixture
def index() -> Iterator[Index]:
    with serving() as index:
        yield index


def locked(index: Index, *wheels: tuple[str, bytes]) -> Source:
    lines = []
    for filename, data in wheels:
        name, version = filename.split("-")[:2]
        lines.append(f"{name}=={version} \\\n    --hash=sha256:{index.add(name, filename, data)}\n")
    text = "".join(lines).encode()
    return Source("engine.lock", sha(text), len(text), text)


def engine(model: str = MODEL) -> tuple[str, bytes]:
    return wheel("engine", "1.0", {"engine/__init__.py": "", "engine/model.py": model}, {"engine": "engine.model:main"})


@pytest.fixture
def args(index: Index, tmp_path: Path) -> dict[str, Any]:
    lock = locked(index, engine(), wheel("torch", "2.11.0", {"torch/__init__.py": "", "torch/version.py": TORCH}))
    return {
        "path": str(tmp_path / "engines" / "engine-1.0-abc"),
        "lock": lock,
        "uv": str(Path(sys.executable).with_name("uv")),
        "cache_dir": str(tmp_path / "cache"),
        "python": sys.executable,
        "index_url": index.url,
        "expect_cuda": "13.0",
        "probe": ["bin/engine", "--version"],
    }


def beside(args: dict[str, Any]) -> list[str]:
    folder = Path(args["path"]).parent
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def site_packages(args: dict[str, Any]) -> Path:
    return next(Path(args["path"]).glob("lib/python3*/site-packages"))


def listing(folder: str) -> dict[str, tuple[int, int, int]]:
    return {
        str(path): (path.lstat().st_ino, path.lstat().st_mtime_ns, path.lstat().st_size)
        for path in Path(folder).rglob("*")
    }


def test_builds_once(apply: Apply, args: dict[str, Any], node: Any) -> None:
    assert apply("python_venv", **args, check=True).state == "changed"
    assert node.ran == []
    assert not Path(args["cache_dir"]).exists()
    done = apply("python_venv", **args)
    assert done.state == "changed"
    assert (done.result["packages"], done.result["patches"]) == (2, [])
    assert beside(args) == ["engine-1.0-abc"]
    venv = Path(args["path"])
    assert subprocess.run([venv / "bin/engine"], capture_output=True, text=True, check=True).stdout == "stock\n"
    assert f"{venv}.building" not in (venv / "bin/engine").read_text()
    assert (venv / "requirements.lock").read_bytes() == args["lock"].inline
    assert list(site_packages(args).glob("engine/__pycache__/model.*.pyc"))

    before = listing(args["path"])
    node.ran.clear()
    for check in (True, False):
        again = apply("python_venv", **args, check=check)
        assert (again.state, again.result) == ("ok", done.result)
    assert node.ran == []
    assert listing(args["path"]) == before


def test_two_venvs_share_files_and_only_one_is_patched(apply: Apply, args: dict[str, Any], tmp_path: Path) -> None:
    apply("python_venv", **args)
    plain = site_packages(args) / "engine/model.py"
    assert plain.stat().st_nlink > 1
    args.update(path=str(tmp_path / "engines" / "engine-1.0-def"), patches=[PATCH])
    done = apply("python_venv", **args)
    file = site_packages(args) / "engine/model.py"
    assert (file.read_text(), plain.read_text()) == (GUARDED, MODEL)
    assert file.with_name("model.py.orig").read_text() == MODEL
    assert done.result["patches"] == [{"name": "guard", "file": PATCH.file, "sha256": sha(GUARDED)}]
    # Compiled after the patch: nothing is written into the venv by whoever imports it first.
    before = listing(args["path"])
    env = {"PATH": os.environ["PATH"]}
    said = subprocess.run([f"{args['path']}/bin/engine"], capture_output=True, text=True, check=True, env=env).stdout
    assert said == "guarded\n"
    assert listing(args["path"]) == before
    # What comes from the cache next is pristine.
    args.update(path=str(tmp_path / "engines" / "engine-1.0-ghi"), patches=[])
    apply("python_venv", **args)
    assert (site_packages(args) / "engine/model.py").read_text() == MODEL


FILES = {"stub-1.0+cpu.dist-info/METADATA": "Name: stub\nVersion: 1.0+cpu\n", "stub.py": "print('a stub')\n"}


def test_files_beside_the_packages(apply: Apply, args: dict[str, Any]) -> None:
    args.update(files=FILES, probe=["bin/python", "-c", "import importlib.metadata as m; print(m.version('stub'))"])
    assert apply("python_venv", **args).state == "changed"
    site = site_packages(args)
    assert {name: (site / name).read_text() for name in FILES} == FILES
    assert list(site.glob("__pycache__/stub.*.pyc"))
    before = listing(args["path"])
    assert apply("python_venv", **args).state == "ok"
    assert listing(args["path"]) == before


def test_a_file_that_a_package_has(apply: Apply, args: dict[str, Any]) -> None:
    args["files"] = {"engine/model.py": "mine\n"}
    with pytest.raises(Failure, match=r"engine/model\.py is there already: it belongs to a package"):
        apply("python_venv", **args)
    assert "engine-1.0-abc" not in beside(args)


@pytest.mark.parametrize("change", ["lock", "patches", "files"])
def test_never_changed_in_place(apply: Apply, args: dict[str, Any], index: Index, change: str) -> None:
    apply("python_venv", **args)
    before = listing(args["path"])
    args[change] = {"patches": [PATCH], "files": FILES, "lock": locked(index, engine())}[change]
    for check in (True, False):
        with pytest.raises(Failure, match="an environment in place is never changed"):
            apply("python_venv", **args, check=check)
    assert listing(args["path"]) == before


def test_what_is_not_ours_is_left_alone(apply: Apply, args: dict[str, Any]) -> None:
    Path(args["path"], "bin").mkdir(parents=True)
    with pytest.raises(Failure, match="is not an environment that sparkops built"):
        apply("python_venv", **args)
    assert beside(args) == ["engine-1.0-abc"]


@pytest.mark.parametrize("cuda", ["12.8", None])
def test_wrong_cuda(apply: Apply, args: dict[str, Any], index: Index, cuda: str | None) -> None:
    """By what torch/version.py says, whatever the distribution calls itself."""
    torch = TORCH.replace("'13.0'", repr(cuda))
    args["lock"] = locked(index, engine(), wheel("torch", "2.11.0", {"torch/version.py": torch}))
    with pytest.raises(Failure, match=rf"built for CUDA {cuda or 'none'}.*expected 13\.0"):
        apply("python_venv", **args)
    assert "engine-1.0-abc" not in beside(args)
    args["expect_cuda"] = None
    assert apply("python_venv", **args).state == "changed"
    assert beside(args) == ["engine-1.0-abc"]


def test_no_torch(apply: Apply, args: dict[str, Any], index: Index) -> None:
    args["lock"] = locked(index, engine())
    with pytest.raises(Failure, match=r"torch/version\.py"):
        apply("python_venv", **args)


def test_a_patch_that_does_not_fit(apply: Apply, args: dict[str, Any], index: Index) -> None:
    args.update(lock=locked(index, engine(MODEL + "# 2\n")), patches=[PATCH], expect_cuda=None)
    with pytest.raises(Failure, match="neither of the files that the patch guard knows"):
        apply("python_venv", **args)
    assert "engine-1.0-abc" not in beside(args)


def test_another_hash_than_the_locks(apply: Apply, args: dict[str, Any], index: Index) -> None:
    index.add("engine", *engine("evil = 1\n"))
    with pytest.raises(Failure, match="uv pip sync ended with status 1") as caught:
        apply("python_venv", **args)
    assert "Hash mismatch" in caught.value.msg
    assert "engine-1.0-abc" not in beside(args)


def test_a_lock_without_hashes(apply: Apply, args: dict[str, Any]) -> None:
    args["lock"] = Source("engine.lock", sha("engine==1.0\n"), 12, b"engine==1.0\n")
    with pytest.raises(Failure, match=r"(?s)--require-hashes.*engine"):
        apply("python_venv", **args)


def test_missing_programs(apply: Apply, args: dict[str, Any]) -> None:
    with pytest.raises(Failure, match=r"(?s)python3\.99.*No interpreter found"):
        apply("python_venv", **{**args, "python": "python3.99"})
    with pytest.raises(Failure, match="there is no uv at /no/uv"):
        apply("python_venv", **{**args, "uv": "/no/uv"})
    assert beside(args) == []


def test_credentials_are_used_and_never_shown(apply: Apply, args: dict[str, Any], index: Index, node: Any) -> None:
    index.login = "me:s3cret"
    args["index_url"] = index.url.replace("://", "://me:s3cret@")
    assert apply("python_venv", **args).state == "changed"
    assert "s3cret" not in json.dumps(node.ran)
    note = Path(args["path"], "sparkops.json").read_text()
    assert "s3cret" not in note + Path(args["path"], "pyvenv.cfg").read_text()
    args.update(path=args["path"] + "d", lock=locked(index, wheel("other", "1.0", {})), expect_cuda=None)
    index.files.clear()
    with pytest.raises(Failure) as caught:
        apply("python_venv", **args)
    assert "://****@127.0.0.1" in caught.value.msg
    assert "s3cret" not in f"{caught.value.msg}{caught.value.result}"


def test_what_uv_says_is_cleaned_of_credentials(apply: Apply, args: dict[str, Any], tmp_path: Path) -> None:
    telling = tmp_path / "uv"
    telling.write_text('#!/bin/sh\necho "cannot reach $UV_DEFAULT_INDEX with p@ss" >&2\nexit 2\n')
    telling.chmod(0o755)
    with pytest.raises(Failure, match=r"cannot reach https://\*\*\*\*@host/simple with \*\*\*\*") as caught:
        apply("python_venv", **{**args, "uv": str(telling), "index_url": "https://me:p%40ss@host/simple"})
    assert "ss@" not in caught.value.msg
    assert "p@ss" not in caught.value.msg


def test_a_failed_probe_takes_the_name_away(apply: Apply, args: dict[str, Any], index: Index) -> None:
    good, path = args["lock"], args["path"]
    args.update(lock=locked(index, engine("def main():\n    raise SystemExit('no GPU here')\n")), expect_cuda=None)
    with pytest.raises(Failure, match=r"(?s)bin/engine --version ended with status 1.*no GPU here"):
        apply("python_venv", **args)
    assert beside(args) == ["engine-1.0-abc.failed"]
    index.add("engine", *engine())
    assert apply("python_venv", **{**args, "lock": good}).state == "changed"
    assert beside(args) == ["engine-1.0-abc"]
    assert Path(path, "bin/engine").exists()


def test_killed_before_the_probe_it_is_tried_again(apply: Apply, args: dict[str, Any], node: Any) -> None:
    apply("python_venv", **args)
    note = Path(args["path"], "sparkops.json")
    note.write_text(json.dumps({**json.loads(note.read_text()), "tried": None}))
    node.ran.clear()
    assert apply("python_venv", **args, check=True).state == "changed"
    assert apply("python_venv", **args).state == "changed"
    assert apply("python_venv", **args).state == "ok"
    assert json.loads(note.read_text())["tried"]


def test_killed_while_building_the_next_run_finishes(args: dict[str, Any], tmp_path: Path, apply: Apply) -> None:
    """The controller and its executor die at once; then the detached job too, as in a power cut."""
    slow = tmp_path / "slow-uv"
    slow.write_text(f'#!/bin/sh\nif [ "$2" = pip ]; then sleep 30; fi\nexec {args["uv"]} "$@"\n')
    slow.chmod(0o755)
    state = str(tmp_path / "home/.local/share/sparkops/state")
    wanted = Wanted(args["path"], args["lock"].digest, [])
    executor = os.fork()
    if executor == 0:
        python_venv.apply(python_venv.Args(**{**args, "uv": str(slow)}), LocalNode(None, state, False, {}))
        os._exit(0)
    job = Job(state, f"python_venv-{wanted.key}")
    deadline = time.monotonic() + 20
    while not any(name.startswith("engine-1.0-abc.building-") for name in beside(args)) or not job.running():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.kill(executor, signal.SIGKILL)
    os.waitpid(executor, 0)
    assert job.running()
    assert wanted.state() == "missing"
    pid = int(Path(job.folder, "pid").read_text().split()[0])
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    for group in [pid, *map(int, children)]:
        os.killpg(group, signal.SIGKILL)
    while job.running():
        time.sleep(0.01)
    assert apply("python_venv", **args).state == "changed"
    assert beside(args) == ["engine-1.0-abc"]


def test_a_running_build_is_joined(args: dict[str, Any], tmp_path: Path, apply: Apply, node: Any) -> None:
    count, go = tmp_path / "count", tmp_path / "go"
    gated = tmp_path / "gated-uv"
    wait = f"while [ ! -e {go} ]; do sleep 0.05; done"
    gated.write_text(f'#!/bin/sh\nif [ "$2" = pip ]; then echo x >> {count}; {wait}; fi\nexec {args["uv"]} "$@"\n')
    gated.chmod(0o755)
    args["uv"] = str(gated)
    executor = os.fork()
    if executor == 0:
        python_venv.apply(python_venv.Args(**args), LocalNode(None, node.state_dir, False, {}))
        os._exit(0)
    deadline = time.monotonic() + 20
    while not count.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.kill(executor, signal.SIGKILL)
    os.waitpid(executor, 0)
    go.touch()
    assert apply("python_venv", **args).state == "changed"
    assert count.read_text() == "x\n"
    assert beside(args) == ["engine-1.0-abc"]


def test_progress_counts_packages(args: dict[str, Any], tmp_path: Path, apply: Apply, node: Any) -> None:
    lingering = tmp_path / "uv"
    lingering.write_text(f'#!/bin/sh\n{args["uv"]} "$@" || exit 1\nif [ "$2" = pip ]; then sleep 0.6; fi\n')
    lingering.chmod(0o755)
    apply("python_venv", **{**args, "uv": str(lingering)})
    assert (2, 2, "packages", "compiling") in node.moves
    assert {(total, unit) for _, total, unit, _ in node.moves} == {(2, "packages")}
