"""Which tests can run here. One that can't is skipped with its reason, or fails under SPARKOPS_REQUIRE_LAB=1."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest


@cache
def no_lab() -> str | None:
    """Why nodes that boot systemd can't be had here: the lab's own words."""
    from sparkops.errors import LabError
    from sparkops.lab.nspawn.host import require

    try:
        require()
    except LabError as error:
        return f"{error.message} (.ci/run names the packages)"
    return None


@cache
def no_network() -> str | None:
    """Why the package registry can't be asked; through pip, as it is set up here."""
    with tempfile.TemporaryDirectory() as folder:
        argv = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-cache-dir", "--retries", "0"]
        asked = subprocess.run(
            [*argv, "--timeout", "15", "--dest", folder, "iniconfig"], capture_output=True, text=True, timeout=120
        )
    return None if asked.returncode == 0 else "pip cannot reach a package registry"


@cache
def no_demo() -> str | None:
    """Why `make demo` can't be run as another user here."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "only root on Linux can become another user"
    missing = [program for program in ("make", "useradd", "runuser", "curl") if not shutil.which(program)]
    return f"missing on this machine: {', '.join(missing)}" if missing else no_network()


NEEDS: dict[str, Callable[[], str | None]] = {"lab": no_lab, "network": no_network, "demo": no_demo}


# Whole minutes: left out of `make check`, which is for every commit.
SLOW = (
    "tests/bench/", "tests/checkpoint/", "tests/cli/", "tests/differential/", "tests/e2e/", "tests/gpu/",
    "tests/inventory/", "tests/lab/", "tests/node/modules/test_http_ready.py",
    "tests/node/modules/test_releases.py", "tests/node/modules/test_serving_evidence.py",
    "tests/node/modules/test_systemd_unit.py", "tests/node/test_become.py", "tests/node/test_graft_from_a_hub.py",
    "tests/node/test_keeping.py", "tests/node/test_python_venv.py", "tests/node/test_safetensors",
    "tests/node/test_uv.py", "tests/playbook/test_broken.py", "tests/runner/", "tests/templates/test_guard.py",
    "tests/test_conftest.py", "tests/test_wheel.py",
)  # fmt: skip


def pytest_configure() -> None:
    """A shell's background jobs ignore Ctrl-C, and so would what the tests start and interrupt."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _ctrl_c_as_it_was() -> Iterator[None]:
    yield
    left = signal.signal(signal.SIGINT, signal.default_int_handler)
    assert left is signal.default_int_handler, f"the test leaves {left} for SIGINT behind"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    root = Path(__file__).parent.parent
    for item in items:
        if str(item.path.relative_to(root)).startswith(SLOW):
            item.add_marker(pytest.mark.slow)


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker, obstacle in NEEDS.items():
        if item.get_closest_marker(marker) and (reason := obstacle()):
            if os.environ.get("SPARKOPS_REQUIRE_LAB") == "1":
                pytest.fail(f"{reason}, and SPARKOPS_REQUIRE_LAB=1 asks for every test", pytrace=False)
            pytest.skip(reason)
