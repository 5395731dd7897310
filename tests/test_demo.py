"""`make demo` on a clean checkout, as an ordinary user who has nothing but Python."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NOT_IN_A_CHECKOUT = shutil.ignore_patterns(".venv", ".git", ".lab*", ".*_cache", "build", "*.egg-info", "__pycache__")
LIMIT = 90.0
# Only what the system has: neither root's own Python nor a venv.
PATH = "/usr/local/bin:/usr/bin:/bin"

Make = Callable[[str], subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def make() -> Iterator[Make]:
    """Runs a target of the Makefile as a user of its own, in a copy of the checkout that is theirs."""
    user = f"sparkops-demo-{os.getpid()}"
    subprocess.run(["useradd", "--create-home", "--shell", "/bin/sh", user], check=True)
    home = Path(f"~{user}").expanduser()
    checkout = home / "sparkops"
    environment = {**os.environ, "HOME": str(home), "USER": user, "LOGNAME": user, "PATH": PATH}

    def run(target: str) -> subprocess.CompletedProcess[str]:
        argv = [str(shutil.which("runuser")), "-u", user, "--", "make", target]
        return subprocess.run(argv, cwd=checkout, env=environment, capture_output=True, text=True, timeout=280)

    try:
        shutil.copytree(ROOT, checkout, ignore=NOT_IN_A_CHECKOUT, symlinks=True)
        subprocess.run(["chown", "-R", user, str(home)], check=True)
        yield run
        run("demo-down")
    finally:
        end_processes(user)
        subprocess.run(["userdel", "--remove", "--force", user], check=True, capture_output=True)


def end_processes(user: str) -> None:
    """End what a user still runs; nobody else has that user."""
    listed = subprocess.run(["ps", "-o", "pid=", "-u", user], capture_output=True, text=True, check=False)
    for pid in map(int, listed.stdout.split()):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.demo
@pytest.mark.timeout(600)
def test_the_demo_serves_and_a_second_run_changes_nothing(make: Make) -> None:
    start = time.monotonic()
    first = make("demo")
    seconds = time.monotonic() - start
    assert first.returncode == 0, first.stdout + first.stderr
    assert first.stdout.count("data: {") > 1, "no streamed answer"
    assert "[DONE]" in first.stdout
    assert "make demo-down" in first.stdout
    assert seconds < LIMIT

    second = make("demo")
    assert second.returncode == 0, second.stdout + second.stderr
    assert second.stdout.count("nothing changed on 2 nodes") == 3, second.stdout

    down = make("demo-down")
    assert down.returncode == 0, down.stdout + down.stderr
