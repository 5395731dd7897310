"""Broken inventories: an error with a place and no traceback, at once; and what both read, they read alike."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from sparkops.errors import InputError, Position
from sparkops.inventory import load
from tests.differential.bundles import Case, cases
from tests.differential.conftest import Ansible
from tests.differential.mutations import mutated
from tests.differential.test_inventories import both, same

GOOD = [
    "ini: inline variables and their types", "ini: quoted values", "ini: group variables are Python literals too",
    "ini: children before they are declared", "ini: ranges of letters, and several in a name", "ini: IPv6 addresses",
    "yaml: hosts, variables, children", "yaml: types are YAML 1.1's", "yaml: anchors, aliases, merge keys",
    "yaml: ranges and ports", "yaml: a diamond", "json: indented with tabs, without an ending",
    "yaml: without an ending",    "ini: without an ending, two plain lines",
]  # fmt: skip
CASES = [case for case in cases() if case.name in GOOD]
EACH = 40
ANSWER = {
    "web": {"hosts": ["w1", "w2"], "vars": {"a": 1}, "children": ["eu"]},
    "eu": ["w3"],
    "old": {"x": 1},
    "_meta": {"hostvars": {"w1": {"n": [1, {"k": None}]}}},
}


def placed(error: InputError, folder: Path) -> bool:
    """Whether the error names one of our files, or the script, and a line that is there."""
    where = error.where
    if isinstance(where, Position):
        lines = Path(where.file).read_bytes().decode("utf-8", "replace").splitlines()
        return 0 < where.line <= len(lines) + 1 and where.column > 0
    return isinstance(where, str) and str(folder) in where


def test_there_are_enough() -> None:
    assert len(CASES) == len(GOOD) and len(CASES) * EACH >= 200


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_an_error_with_a_place_or_what_ansible_reads(ansible: Ansible, tmp_path: Path, case: Case) -> None:
    [(file, (text, _))] = case.files.items()
    refused = 0
    for number in range(EACH):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / file).write_text(mutated(text, number), encoding="utf-8", newline="")
        start = time.process_time()
        try:
            load([str(folder / file)])
        except InputError as error:
            refused += 1
            assert placed(error, folder), f"{number}: {error!r} at {error.where}"
        else:
            found, expected = both(ansible, [str(folder / file)], folder)
            assert "error" in expected or same(found, expected), f"{number}: ours {found}\nAnsible's {expected}"
        assert time.process_time() - start < 5
    assert refused > EACH / 10


def test_a_script_that_answers_wrongly_is_named(tmp_path: Path) -> None:
    script = tmp_path / "inv.sh"
    script.write_text(f"#!/bin/sh\ncat {tmp_path}/answer.json\n")
    script.chmod(0o755)
    refused = 0
    for number in range(120):
        (tmp_path / "answer.json").write_text(mutated(json.dumps(ANSWER), number), encoding="utf-8")
        try:
            load([str(script)])
        except InputError as error:
            refused += 1
            assert error.where == str(script)
    assert refused > 50
