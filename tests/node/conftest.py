"""A node that is this machine, and a way to run a module on it as a task would."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path as LocalPath
from typing import Any

import pytest

from sparkops.node.api import Arguments, Completed, Outcome
from sparkops.node.runtime import LocalNode


class HereNode(LocalNode):
    """LocalNode without a controller: `store` stands for its files, and what was run, fetched and told is kept."""

    def __init__(self, home: str) -> None:
        super().__init__(None, home + "/.local/share/sparkops/state", check=False, env={"HOME": home})
        self.home = home
        self.store: dict[str, bytes] = {}
        self.fetched: list[str] = []
        self.ran: list[list[str]] = []
        self.told: list[str] = []
        self.moves: list[tuple[float, float | None, str, str]] = []

    def run(self, argv: list[str], **options: Any) -> Completed:
        self.ran.append(argv)
        return super().run(argv, **options)

    def progress(self, done: float, total: float | None, unit: str, msg: str = "") -> None:
        self.moves.append((done, total, unit, msg))

    def tell(self, lines: list[str]) -> None:
        self.told += lines

    def content(self, digest: str, size: int) -> Iterator[bytes]:
        self.fetched.append(digest)
        data = self.store[digest]
        assert len(data) == size
        return iter([data[:1000], data[1000:]])

    def program(self, name: str, script: str) -> None:
        """Put a program of that name first on the task's PATH."""
        folder = LocalPath(self.home, "bin")
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(script)
        (folder / name).chmod(0o755)
        self.env["PATH"] = f"{folder}:{os.environ['PATH']}"


Apply = Callable[..., Outcome]


@pytest.fixture
def node(tmp_path: LocalPath) -> HereNode:
    home = tmp_path / "home"
    home.mkdir()
    return HereNode(str(home))


@pytest.fixture
def apply(node: HereNode) -> Apply:
    """apply("file", path=..., check=True): the outcome of one task; names as in the playbook."""

    def run(module: str, *, check: bool = False, **values: Any) -> Outcome:
        code = importlib.import_module(f"sparkops.node.modules.{module}")
        aliases = code.Args.aliases
        args: Arguments = code.Args(**{aliases.get(name, name): value for name, value in values.items()})
        node.check = check
        outcome = code.apply(args, node)
        assert isinstance(outcome, Outcome)
        return outcome

    return run
