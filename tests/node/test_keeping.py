"""The executor's byte-code on the node: asked for once, taken only when it is whole and our own."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sparkops.node import boot, bundle, keeping
from sparkops.node.frames import Link
from sparkops.transport.local import LocalChannel
from sparkops.transport.session import Session

TASK = {"module": "command", "args": {"argv": ["true"], "cmd": None}}


class Asked(LocalChannel):
    """Counts the bytes that are sent, and knows whether sources were asked for."""

    def __init__(self) -> None:
        super().__init__(sys.executable)
        self.sent = 0
        self.first = b""

    def write(self, data: bytes) -> None:
        self.sent += len(data)
        super().write(data)

    def read(self) -> bytes:
        data = super().read()
        self.first = self.first or data[:1]
        return data


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where it is, in a home of our own."""
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path / ".local/share/sparkops/executor"


def run(check: bool = False, modules: tuple[str, ...] = ("command",)) -> bool:
    """A run of one task; whether the node asked for the sources."""
    channel = Asked()
    session = Session(channel, bundle.start(modules), "x")
    session.send({"op": "open", "state_dir": "~/state", "check": check, "lease": {"who": "me"}})
    session.send({"op": "window", "tasks": [TASK]})
    states = []
    while (message := session.receive())["ev"] != "done":
        states += [message["state"]] if message["ev"] == "result" else []
    session.close()
    assert states == ["unknown" if check else "changed"]
    asked = channel.first == boot.NEED
    assert (channel.sent > 20_000) is asked
    return asked


def test_sources_are_asked_for_once(kept: Path) -> None:
    assert [run(), run(), run()] == [True, False, False]
    (file,) = kept.iterdir()
    assert (kept.stat().st_mode & 0o777, file.stat().st_mode & 0o777) == (0o700, 0o600)


def test_what_is_flushed_before_the_node_has_spoken_comes_behind_the_sources(kept: Path) -> None:
    for _ in range(2):
        session = Session(Asked(), bundle.start(["command"]), "x")
        session.send({"op": "open", "state_dir": "~/state", "check": False})
        session.flush()
        session.send({"op": "window", "tasks": [TASK]})
        session.flush()
        assert [session.receive()["ev"] for _ in range(3)] == ["hello", "result", "done"]
        session.close()


def test_check_mode_keeps_nothing_and_uses_what_is_there(kept: Path) -> None:
    assert run(check=True)
    assert not kept.exists()
    run()
    assert not run(check=True)


def test_other_sources_are_asked_for(kept: Path) -> None:
    assert [run(), run(modules=("command", "stat")), run()] == [True, True, False]


def _cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-10])


def _flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


def _empty(file: Path) -> None:
    file.write_bytes(b"")


def _open_to_all(file: Path) -> None:
    file.chmod(0o622)


def _open_folder(file: Path) -> None:
    file.parent.chmod(0o777)


def _link(file: Path) -> None:
    file.parent.rename(file.parent.with_name("elsewhere"))
    file.parent.symlink_to("elsewhere")


@pytest.mark.parametrize("spoil", [_cut, _flip, _empty, _open_to_all, _open_folder, _link])
def test_what_is_not_whole_or_not_ours_alone_is_not_run(kept: Path, spoil: Callable[[Path], None]) -> None:
    run()
    (file,) = kept.iterdir()
    spoil(file)
    assert run()


def test_a_home_that_cannot_be_written(kept: Path) -> None:
    kept.parent.mkdir(parents=True)
    kept.write_text("no folder")
    assert [run(), run()] == [True, True]


def test_few_are_kept(kept: Path) -> None:
    kept.mkdir(parents=True, mode=0o700)
    for number in range(6):
        (kept / f"old{number}").touch()
        time.sleep(0.01)
    run()
    names = sorted(path.name for path in kept.iterdir())
    assert len(names) == keeping.KEPT and names[-3:] == ["old3", "old4", "old5"]
    assert not run()


def test_the_lease_is_free_before_the_byte_code_is_written(kept: Path) -> None:
    # The next run follows at once, again and again.
    for _ in range(5):
        run()
        for file in kept.iterdir():
            file.unlink()


def test_another_user_s_child_starts_from_byte_code_too(tmp_path: Path) -> None:
    start = bundle.start(["command"])
    found = boot.Modules(b"", "0" * 64, start.packed)
    text = Path(boot.__file__).read_bytes()
    child = bytes(boot.Modules(text, "0" * 64, keeping.byte_code(found)))
    with subprocess.Popen(bundle.argv(sys.executable), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin and process.stdout
        link = Link(process.stdout.fileno(), process.stdin.fileno())
        link.write(child)
        link.send({"op": "open", "state_dir": str(tmp_path / "state"), "check": False})
        link.send({"op": "window", "tasks": [TASK]})
        said: list[Any] = [link.receive()[0] for _ in range(3)]
        process.stdin.close()
    assert [one["ev"] for one in said] == ["hello", "result", "done"]
    assert said[1]["state"] == "changed"
