"""Weights on one node: what is known of them, what is wrong with them, and a copy by rsync between two folders."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from sparkops.node import incoming, offers
from sparkops.node import weights_record as weights
from sparkops.node.api import Failure, Source
from sparkops.node.hubclient import blob_id, last_line, needed
from sparkops.node.modules import weights_pull

FILES = {"config.json": b"{}", "a.safetensors": b"a" * 70_000, "sub/b.safetensors": b"b" * 50_000}
SECRET = "between us"


def fill(folder: Path) -> Path:
    for name, data in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def listing(folder: Path | str) -> list[str]:
    return sorted(path.name for path in Path(folder).iterdir())


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def flip(path: Path, keep_times: bool = True) -> None:
    times = path.stat()
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    if keep_times:
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


@pytest.fixture
def model(node: Any) -> Path:
    return fill(Path(node.home, "models/model"))


def look(apply: Any, folder: Path) -> Any:
    return apply("weights_look", path=str(folder), fabric_address="").result


def test_what_was_there_is_taken_as_it_is(apply: Any, model: Path) -> None:
    found = look(apply, model)
    assert (found["present"], found["files"]) == (True, 0)
    assert apply("weights_verify", path=str(model), check=True).state == "ok"
    assert look(apply, model)["files"] == 0
    first = apply("weights_verify", path=str(model))
    assert (first.state, first.result["files"]) == ("ok", 3)
    assert apply("weights_verify", path=str(model)).result["content"] == first.result["content"]


@pytest.mark.parametrize("gone", ["config.json", "a.safetensors"])
def test_what_lacks_a_file_is_not_there(apply: Any, model: Path, gone: str) -> None:
    (model / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"t": "a.safetensors"}}))
    (model / gone).unlink()
    assert not look(apply, model)["present"]
    with pytest.raises(Failure, match="no checkpoint to verify"):
        apply("weights_verify", path=str(model))


def test_a_flipped_byte_that_changed_no_time_is_found_by_reading(apply: Any, model: Path) -> None:
    apply("weights_verify", path=str(model))
    flip(model / "a.safetensors")
    assert look(apply, model)["present"]
    with pytest.raises(Failure, match=r"a\.safetensors: other bytes") as failed:
        apply("weights_verify", path=str(model))
    assert list(failed.value.result["problems"]) == ["a.safetensors"]
    # From now on it is known without reading.
    assert list(look(apply, model)["problems"]) == ["a.safetensors"]


def test_a_file_that_was_written_to_is_read_again(apply: Any, node: Any, model: Path) -> None:
    apply("weights_verify", path=str(model))
    node.moves.clear()
    assert look(apply, model)["present"]
    assert node.moves == []
    os.utime(model / "a.safetensors")
    assert look(apply, model)["present"]
    assert node.moves
    flip(model / "a.safetensors", keep_times=False)
    assert list(look(apply, model)["problems"]) == ["a.safetensors"]


@pytest.fixture
def source(node: Any) -> Path:
    return fill(Path(node.home, "elsewhere/model"))


class Executor:
    """A process that offers a checkpoint, as an executor does."""

    CODE = """
import sys, time
sys.path.insert(0, {root!r})
from tests.node.conftest import HereNode
from sparkops.node.modules import weights_offer
node = HereNode({home!r})
node.state_dir += "-source"
args = weights_offer.Args(path={path!r}, state="present", address="127.0.0.1", to={to!r}, secret={secret!r})
import json
print(json.dumps(weights_offer.apply(args, node).result), flush=True)
time.sleep(60)
"""

    def __init__(self, node: Any, source: Path, to: str = "127.0.0.1") -> None:
        values = {"root": str(Path(__file__).parents[3]), "home": node.home, "path": str(source), "to": to}
        code = self.CODE.format(**values, secret=SECRET)
        self.process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout
        self.offer = json.loads(self.process.stdout.readline())

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def executor(node: Any, source: Path) -> Any:
    if shutil.which("rsync") is None:
        (pytest.fail if os.environ.get("SPARKOPS_REQUIRE_LAB") else pytest.skip)("there is no rsync on this machine")
    running = Executor(node, source)
    yield running
    running.kill()


def take(apply: Any, model: Path, offer: dict[str, Any], **more: Any) -> Any:
    values = {"address": "127.0.0.1", "port": offer["port"], "files": offer["files"], "own_address": "", "source": "x"}
    return apply("weights_take", path=str(model), **{**values, "secret": SECRET, **more})


def contents(folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file() and not path.name.endswith("~")]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_a_copy(apply: Any, node: Any, executor: Executor) -> None:
    model = Path(node.home, "models/model")
    assert take(apply, model, executor.offer).state == "changed"
    assert contents(model) == FILES
    assert listing(model.parent) == ["model"]
    assert look(apply, model)["present"]
    assert apply("weights_verify", path=str(model)).state == "ok"


def test_a_bad_file_is_copied_and_the_others_stay(apply: Any, node: Any, executor: Executor) -> None:
    model = Path(node.home, "models/model")
    take(apply, model, executor.offer)
    kept = (model / "sub/b.safetensors").stat().st_ino
    flip(model / "a.safetensors", keep_times=False)
    take(apply, model, executor.offer)
    assert contents(model) == FILES
    assert (model / "sub/b.safetensors").stat().st_ino == kept


def test_a_stopped_copy_goes_on_and_a_wrong_beginning_does_not_stay(apply: Any, node: Any, executor: Executor) -> None:
    model = Path(node.home, "models/model")
    folder = Path(weights.staging(str(model)))
    folder.mkdir(parents=True)
    (folder / "a.safetensors").write_bytes(FILES["a.safetensors"][:30_000])
    (folder / "config.json").write_bytes(b"[]")
    (folder / "no.safetensors").write_bytes(b"of another checkpoint")
    take(apply, model, executor.offer)
    assert contents(model) == FILES


@pytest.mark.parametrize(("more", "said"), [({"secret": "guessed"}, "auth failed"), ({"port": 1}, "ended")])
def test_nobody_else_is_served(apply: Any, node: Any, executor: Executor, more: dict[str, Any], said: str) -> None:
    with pytest.raises(Failure, match=said):
        take(apply, Path(node.home, "models/model"), executor.offer, **more)
    assert not Path(node.home, "models/model").exists()


def test_only_the_named_address_is_served(apply: Any, node: Any, source: Path) -> None:
    other = Executor(node, source, to="127.0.0.2")
    try:
        with pytest.raises(Failure, match="ended"):
            take(apply, Path(node.home, "models/model"), other.offer)
    finally:
        other.kill()


def test_an_offer_ends_with_its_executor(node: Any, executor: Executor) -> None:
    jobs = Path(node.state_dir + "-source", "jobs")
    assert listing(jobs)
    executor.kill()
    end = time.monotonic() + 5
    while listing(jobs) and time.monotonic() < end:
        time.sleep(0.05)
    assert listing(jobs) == []


def test_what_the_source_no_longer_has_is_named(apply: Any, node: Any, executor: Executor, source: Path) -> None:
    flip(source / "a.safetensors")
    with pytest.raises(Failure, match=r"a\.safetensors came twice"):
        take(apply, Path(node.home, "models/model"), executor.offer)
    assert not Path(node.home, "models/model").exists()


def test_a_full_disk_is_said_before(apply: Any, node: Any, executor: Executor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incoming, "SPARE", 1 << 60)
    with pytest.raises(Failure, match="make room"):
        take(apply, Path(node.home, "models/model"), executor.offer)


def test_names_that_lead_out_are_refused(apply: Any, node: Any, executor: Executor) -> None:
    for name in ("../x", "/etc/x", "a//b", "a\nb", ""):
        with pytest.raises(Failure, match="no name of a file"):
            take(apply, Path(node.home, "models/model"), {**executor.offer, "files": {name: {"size": 1, "sha256": ""}}})


def put(apply: Any, node: Any, model: Path, **more: Any) -> Any:
    node.store = {digest(data): data for data in FILES.values()}
    files = [Source(name, digest(data), len(data), None) for name, data in FILES.items()]
    return apply("weights_put", path=str(model), names=list(FILES), files=files, source="", **more)


def test_what_came_before_is_not_sent_again(apply: Any, node: Any) -> None:
    model = Path(node.home, "models/model")
    folder = Path(weights.staging(str(model)))
    folder.mkdir(parents=True)
    (folder / "a.safetensors").write_bytes(FILES["a.safetensors"])
    assert put(apply, node, model, check=True).state == "changed"
    assert not model.exists()
    put(apply, node, model)
    assert contents(model) == FILES
    assert digest(FILES["a.safetensors"]) not in node.fetched


@pytest.mark.parametrize("stop_at", range(1, 12))
def test_a_kill_while_names_are_given_leaves_whole_files(
    apply: Any, node: Any, stop_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Path(node.home, "models/model")
    put(apply, node, model)
    for name in ("a.safetensors", "config.json"):
        flip(model / name, keep_times=False)
    bad = contents(model)
    calls, rename = [0], os.rename

    def killed(*args: Any) -> None:
        calls[0] += 1
        if calls[0] == stop_at:
            raise KeyboardInterrupt
        rename(*args)

    monkeypatch.setattr(os, "rename", killed)
    try:
        put(apply, node, model)
    except KeyboardInterrupt:
        now = contents(model)
        assert all(now[name] in (FILES[name], bad[name]) for name in FILES)
    monkeypatch.undo()
    put(apply, node, model)
    assert contents(model) == FILES
    assert look(apply, model)["present"]
    assert listing(model.parent) == ["model"]


def prune(apply: Any, node: Any, **more: Any) -> Any:
    values = {"models_dir": f"{node.home}/models", "home": f"{node.home}/sparkops", "only": "", "adopted": False}
    return apply("weights_prune", **{**values, **more})


def test_only_what_sparkops_put_there_goes(apply: Any, node: Any) -> None:
    put(apply, node, Path(node.home, "models/ours"))
    fill(Path(node.home, "models/theirs"))
    Path(node.home, "models/.sparkops-half.part").mkdir()
    assert prune(apply, node, check=True).state == "changed"
    assert Path(node.home, "models/ours").exists()
    done = prune(apply, node)
    assert sorted(map(os.path.basename, done.result["removed"])) == ["half", "ours"]
    assert listing(f"{node.home}/models") == ["theirs"]
    assert prune(apply, node).state == "ok"
    prune(apply, node, adopted=True)
    assert listing(f"{node.home}/models") == []


@pytest.mark.parametrize("command", ["exec vllm serve {} --port 1", "exec vllm serve '{}'", "it's {}"])
def test_what_a_release_serves_stays(apply: Any, node: Any, command: str) -> None:
    put(apply, node, Path(node.home, "models/ours"))
    release = Path(node.home, "sparkops/releases/vllm/3")
    release.mkdir(parents=True)
    (release / "run").write_text(command.format(f"{node.home}/models/ours"))
    done = prune(apply, node)
    assert (done.state, done.msg) == ("ok", f"{node.home}/models/ours stays: release vllm 3 serves it")
    with pytest.raises(Failure, match="release vllm 3"):
        prune(apply, node, only="ours")


def test_pace() -> None:
    assert incoming.pace([(0.0, 0)], 100) == ""
    assert incoming.pace([(0.0, 0), (2.0, 50_000_000)], 100_000_000) == "25 MB/s, 2 s left"
    assert incoming.pace([(0.0, 0), (2.0, 2_000_000)], 1_000_000_000) == "1 MB/s, 17 min left"
    assert incoming.pace([(0.0, 5), (2.0, 5)], 100) == ""


def test_the_other_forms_of_the_same_weights_are_left_out() -> None:
    def names(*given: str) -> list[str]:
        return list(needed({name: {} for name in given}))

    assert names("a.safetensors", "a.bin", "original/a.pth", ".gitattributes", "c.json") == ["a.safetensors", "c.json"]
    assert names("a.bin", "c.json") == ["a.bin", "c.json"]


def test_the_client_s_words() -> None:
    assert last_line("Trying\nError: no. '404 Not Found'\nFor more information\nHint: x\n") == "no. '404 Not Found'"
    assert last_line("Traceback\n  x\nOSError: Consistency check failed\nThis is usually\n") == (
        "OSError: Consistency check failed"
    )
    assert last_line("killed\n\n") == "killed"
    assert last_line("") == ""


def test_a_small_file_is_what_git_calls_it(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"hello\n")
    assert blob_id(str(path)) == "ce013625030ba8dba906f756967f9e9ca394464a"
    listed = {"size": 6, "sha256": None, "blob": blob_id(str(path))}
    assert weights_pull.is_as_listed(str(path), listed, "")
    assert not weights_pull.is_as_listed(str(path), {**listed, "blob": "0" * 40}, "")
    assert not weights_pull.is_as_listed(str(path), {**listed, "size": 7}, "")


def test_the_daemon_s_configuration_reads_only() -> None:
    text = offers.config("/m/100%", "/s", "10.0.0.2")
    assert "read only = yes" in text
    assert "hosts allow = 10.0.0.2" in text
    assert "path = /m/100%%" in text
