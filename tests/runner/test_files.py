"""Files over 64 KiB are fetched while a window runs; several of them in one window, also through sudo."""

from __future__ import annotations

import os
import pwd
import shutil
from pathlib import Path
from typing import Any

import pytest

from sparkops.playbook.files import Files
from sparkops.runner.window import Window
from tests.runner.conftest import Play

ME = pwd.getpwuid(os.geteuid()).pw_name
LOOP = """
- hosts: all
  gather_facts: false
  {become}
  tasks:
    - copy: {{src: "{{{{ item }}}}", dest: "{dest}/{{{{ item }}}}"}}
      loop: [one, two, three]
    - command: echo behind
      register: behind
"""


def large(folder: Path, *names: str) -> list[bytes]:
    data = [os.urandom(100_000 + 300_000 * at) for at, _ in enumerate(names)]
    for name, content in zip(names, data, strict=True):
        (folder / name).write_bytes(content)
    return data


@pytest.mark.parametrize(
    "become",
    [
        pytest.param("", id="ourselves"),
        # root's sudo asks for nothing.
        pytest.param(f"become: true\n  become_user: {ME}", id="through sudo", marks=pytest.mark.lab),
    ],
)
def test_several_large_files_in_one_window(play: Play, tmp_path: Path, become: str) -> None:
    if become:
        assert shutil.which("sudo"), "this test needs sudo"
    data = large(tmp_path, "one", "two", "three")
    dest = tmp_path / "dest"
    dest.mkdir()
    ran = play(LOOP.format(become=become, dest=dest))
    assert ran.code == 0, ran.tasks()
    assert [(dest / name).read_bytes() for name in ("one", "two", "three")] == data


def test_a_word_to_the_node_may_come_before_the_pieces(play: Play, tmp_path: Path) -> None:
    (data,) = large(tmp_path, "one")
    ran = play(
        f"""
        - hosts: all
          gather_facts: false
          tasks:
            - {{command: "true", notify: [told, copied]}}
          handlers:
            - {{name: told, debug: {{msg: hello}}}}
            - {{name: copied, copy: {{src: one, dest: {tmp_path}/dest}}}}
        """
    )
    assert ran.code == 0
    assert (tmp_path / "dest").read_bytes() == data
    assert ran.states()["copied"] == "changed"


class Sent:
    """A session that keeps what is sent."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []

    def send(self, message: dict[str, Any], blob: bytes = b"") -> None:
        assert message == {"op": "piece"}
        self.pieces.append(blob)

    def flush(self) -> None:
        pass


@pytest.mark.parametrize(
    ("now", "sizes"), [(100_000, [100_000]), (70_000, [70_000, 0]), (100_001, [100_000]), (None, [0])]
)
def test_exactly_what_was_announced_is_sent(tmp_path: Path, now: int | None, sizes: list[int]) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(100_000))
    files, session = Files(lambda _: [], lambda _: {}), Sent()
    source = files.source("file", str(tmp_path / "play.yml"), None)
    path.unlink()
    if now is not None:
        path.write_bytes(bytes(now))
    window = Window(session, files, print, print, print)  # type: ignore[arg-type]
    window._send_file(source["digest"], source["size"])
    assert [len(piece) for piece in session.pieces] == sizes
