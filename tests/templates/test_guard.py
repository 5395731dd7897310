"""templates/guard.j2 as sh runs it: what a start does first. Going back: tests/node/modules/test_releases.py."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import pytest

from sparkops.playbook.template import Templar
from sparkops.recipes.load import Catalogue
from sparkops.serving.command import Place, serve_command, shell_line

TEMPLATES = Path(__file__).parents[2] / "templates"
# A Spark's memory, in kB.
TOTAL = 127611696
SHELLS = [shell for shell in ("dash", "bash", "busybox") if shutil.which(shell)]


class Service:
    """A service's folder with one release, a guard and a meminfo of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "1").mkdir()
        (folder / "current").symlink_to("1")
        self.guard = folder / "guard"
        self.guard.write_text(Templar().render_file(TEMPLATES / "guard.j2", {"service": "vllm"}))
        self.meminfo = folder / "meminfo"
        self.run("fp8")

    def run(self, recipe: str, *words: str) -> None:
        """The release's command: a recipe's, and more words."""
        place = Place("/e", "/m", "127.0.0.1", 8000)
        (self.folder / "1/run").write_text(shell_line([*serve_command(Catalogue().recipe(recipe), place), *words]))

    def available(self, gib: float) -> None:
        """So much memory is available from now on; another MemAvailable would be another line."""
        text = f"MemTotal:       {TOTAL} kB\nMemFree: 1 kB\nMemAvailable:   {int(gib * 2**20)} kB\nCached: 9 kB\n"
        new = self.folder / "new"
        new.write_text(text)
        new.replace(self.meminfo)

    def argv(self, seconds: object, shell: str = "sh") -> list[str]:
        words = [shell, "sh"] if shell == "busybox" else [shell]
        return [*words, str(self.guard), str(seconds), str(self.meminfo)]

    def start(self, seconds: object, shell: str = "sh") -> list[str]:
        """What the guard says; it always succeeds, and complains of nothing."""
        done = subprocess.run(self.argv(seconds, shell), capture_output=True, text=True, timeout=30)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.splitlines()


@pytest.fixture
def service(tmp_path: Path) -> Service:
    return Service(tmp_path)


@pytest.mark.parametrize("shell", SHELLS)
def test_memory_enough_is_not_waited_for(service: Service, shell: str) -> None:
    service.available(73.1)
    assert service.start(60, shell) == []


@pytest.mark.parametrize("shell", SHELLS)
def test_the_wait_ends_when_memory_is_back(service: Service, shell: str) -> None:
    service.available(40)
    began = time.monotonic()
    running = subprocess.Popen(service.argv(60, shell), stdout=subprocess.PIPE, text=True)
    assert running.stdout
    assert running.stdout.readline().rstrip("\n") == (
        "waiting up to 60 s for memory to come back: the start asks for 73.0 GiB (0.6 of 121.7), 40.0 are available"
    )
    assert running.poll() is None
    service.available(100)
    said, _ = running.communicate(timeout=10)
    assert said.startswith("memory is back after ")
    assert said.endswith(" s: 100.0 GiB are available\n")
    assert time.monotonic() - began < 10


@pytest.mark.parametrize("shell", SHELLS)
def test_the_wait_is_bounded(service: Service, shell: str) -> None:
    service.available(40)
    began = time.monotonic()
    assert service.start(2, shell)[1] == "starting without it: 40.0 GiB are available after 2 s"
    assert 1.9 < time.monotonic() - began < 6


def test_what_can_never_be_is_not_waited_for(service: Service) -> None:
    service.available(118)
    service.run("fp8", "--gpu-memory-utilization", "1.2")
    (said,) = service.start(60)
    assert said.startswith("not waiting for memory: the start asks for 146.0 GiB (1.2 of 121.7)")


@pytest.mark.parametrize(
    ("words", "waits"),
    [
        ([], True),
        (["--gpu-memory-utilization", "0.3"], False),
        (["--gpu-memory-utilization=0.3"], False),
        (["--gpu_memory_utilization=0.3", "--enforce-eager"], False),
        (["--gpu-memory-utilization", "0.30", "--enforce-eager"], False),
        (["--gpu-memory-utilization", "$(reboot)"], True),
    ],
)
def test_the_share_is_what_the_release_s_command_says_last(service: Service, words: list[str], waits: bool) -> None:
    service.available(40)
    service.run("fp8", *words)
    assert bool(service.start(1)) == waits


def test_the_share_is_that_of_the_release_it_goes_back_to(service: Service) -> None:
    shutil.copytree(service.folder / "1", service.folder / "2")
    (service.folder / "confirmed").symlink_to("1")
    (service.folder / "current").unlink()
    (service.folder / "current").symlink_to("2")
    (service.folder / "2/unconfirmed").write_text("1 boot\n")
    service.run("fp8", "--gpu-memory-utilization", "0.2")
    service.available(40)
    assert service.start(1) == ["release 2 was never confirmed: back to 1"]


def test_it_never_keeps_a_start_from_happening(service: Service) -> None:
    service.available(40)
    assert service.start(0) == []
    service.meminfo.write_text("MemTotal: many\n")
    assert service.start(60) == []
    service.meminfo.unlink()
    assert subprocess.run(service.argv(60), capture_output=True).returncode == 0
    service.available(40)
    assert subprocess.run(service.argv("x"), capture_output=True, timeout=10).returncode == 0
    (service.folder / "1/run").unlink()
    assert service.start(60) == []
    (service.folder / "current").unlink()
    assert service.start(60) == []
