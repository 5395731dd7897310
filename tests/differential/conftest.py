"""ansible-core's own inventory, in one process for the whole session."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

WORKER = Path(__file__).parent / "ansible_inventory.py"


class Ansible:
    """Asks the worker; its answers are those of ansible_inventory.py."""

    def __init__(self, home: Path) -> None:
        self._log = (home / "stderr").open("w")
        self._process = subprocess.Popen(
            [sys.executable, str(WORKER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            cwd=home,
            env={**os.environ, "HOME": str(home), "ANSIBLE_HOME": str(home), "ANSIBLE_LOCAL_TEMP": str(home / "tmp")},
        )

    def inventory(
        self, sources: list[str], folder: Path, patterns: list[tuple[str, str | None]] | None = None
    ) -> dict[str, Any]:
        """What ansible-inventory lists in `folder`, and what each (pattern, limit) selects; or {"error": message}."""
        process = self._process
        assert process.stdin and process.stdout
        case = {"sources": sources, "cwd": str(folder), "patterns": patterns or []}
        print(json.dumps(case), file=process.stdin, flush=True)
        answer: dict[str, Any] = json.loads(process.stdout.readline())
        return answer

    def close(self) -> None:
        self._process.communicate(timeout=60)
        self._log.close()


@pytest.fixture(scope="session")
def ansible(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ansible]:
    worker = Ansible(tmp_path_factory.mktemp("ansible-inventory"))
    yield worker
    worker.close()
