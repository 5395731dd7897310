"""The lab of two nodes that tests share where their order does not matter, and what the first run on it was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.leaks import Watch
from tests.e2e.nodes import PASSWORD, VERBS, First, Nodes, lab


@pytest.fixture(scope="session")
def password() -> str:
    return PASSWORD


@pytest.fixture(scope="session")
def password_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("password") / "password"
    path.write_text(PASSWORD + "\n")
    return str(path)


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    with lab(tmp_path_factory.mktemp("shared") / "lab", 2, "nspawn", "--sudo-password", f"spark-2={PASSWORD}") as nodes:
        yield nodes


@pytest.fixture(scope="session")
def first(bare: Nodes) -> First:
    with Watch(PASSWORD) as watch:
        return First([bare.sparkops(*verb, "-K", stdin=PASSWORD + "\n") for verb in VERBS], watch)


@pytest.fixture
def nodes(bare: Nodes, first: First) -> Nodes:
    """Both nodes serve fp8."""
    return bare


@pytest.fixture
def play(tmp_path: Path) -> Path:
    """A playbook that changes nothing."""
    path = tmp_path / "play.yml"
    path.write_text("- hosts: all\n  gather_facts: false\n  tasks:\n    - command: id -un\n      changed_when: false\n")
    return path
