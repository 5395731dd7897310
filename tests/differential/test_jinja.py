"""The same Jinja through ansible-core and through sparkops: equal values and types, or both refuse.

Differences on purpose stand in differences.yml under `jinja` with what sparkops does instead; ADR 007 says why.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from sparkops.errors import SparkopsError
from sparkops.playbook.environment import plugins
from sparkops.playbook.filters import OURS
from sparkops.playbook.template import OMIT, Templar
from sparkops.project.values import Text
from sparkops.project.yaml import load
from tests.differential.typed import typed

HERE = Path(__file__).parent
FOLDER = HERE / "jinja"
VARIABLES = FOLDER / "variables.yml"
WORKER = "tests.differential.ansible_jinja"
DIFFERENCES: dict[str, dict[str, str]] = yaml.safe_load((HERE / "differences.yml").read_text("utf-8")).get("jinja", {})
ENVIRONMENT = {"SPARKOPS_DIFF": "value", "TZ": "UTC", "ANSIBLE_NOCOLOR": "1", "ANSIBLE_DEPRECATION_WARNINGS": "0"}

Case = tuple[str, str]


def _lines(name: str) -> list[str]:
    text = (FOLDER / name).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


# Every filter and test on values of every kind. Ansible's sets have no order; three grow without bound on a text.
VALUES = (
    "number",
    "ratio",
    "text",
    "empty",
    "nothing",
    "yes_word",
    "numbers",
    "people",
    "map",
    "empty_list",
    "date",
    "nowhere",
)
UNORDERED = {"union", "intersect", "difference", "symmetric_difference"}
UNTRIED = {"random", "shuffle", "permutations", "combinations", "password_hash", "combine", "b64decode"}
UNTRIED |= set(OURS)
# A list is no indent, and no name.
PLAIN_ONLY = UNORDERED | {"to_json", "to_nice_json", "to_yaml", "to_nice_yaml"}
OF_NAMES = {"filter", "test", "uri"}
PLUGINS = {kind: [name for name in plugins(kind) if name.isidentifier()] for kind in ("filter", "test")}
MATRIX: list[Case] = [
    ("template", f"{{{{ {value} {text} }}}}")
    for value in VALUES
    for text in (
        *(f"| {name}" for name in PLUGINS["filter"] if name not in UNTRIED),
        *(f"| {name}([3])" for name in PLUGINS["filter"] if name not in UNTRIED | PLAIN_ONLY),
        *(f"is {name}" for name in PLUGINS["test"] if name not in OF_NAMES),
    )
]

CASES: list[Case] = [
    *(("template", f"{{{{ {line} }}}}") for line in _lines("expressions.txt")),
    *(("template", text) for text in yaml.safe_load((FOLDER / "templates.yml").read_text(encoding="utf-8"))),
    *(("condition", line) for line in _lines("conditions.txt")),
    *(("file", path.name) for path in sorted((FOLDER / "templates").glob("*.j2"))),
]


@pytest.fixture(scope="session")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> dict[Case, Any]:
    """What ansible-core answers to all cases, from one process."""
    home = tmp_path_factory.mktemp("ansible")
    cases = [{"kind": kind, "text": text} for kind, text in (*CASES, *MATRIX)]
    given = json.dumps({"folder": str(FOLDER), "variables": str(VARIABLES), "cases": cases})
    run = subprocess.run(
        [sys.executable, "-m", WORKER],
        input=given,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
        cwd=HERE.parents[1],
        env={**os.environ, **ENVIRONMENT, "ANSIBLE_HOME": str(home), "ANSIBLE_LOCAL_TEMP": str(home / "tmp")},
    )
    return dict(zip((*CASES, *MATRIX), json.loads(run.stdout), strict=True))


@pytest.fixture(scope="session")
def names() -> Any:
    """The variables as sparkops reads them."""
    return load(VARIABLES)


def ours(names: Any, kind: str, text: str) -> Any:
    """The same case through sparkops."""
    templar = Templar([FOLDER])
    try:
        if kind == "condition":
            return {"value": typed(templar.truth(Text(text), names))}
        if kind == "file":
            return {"value": typed(templar.render_file(FOLDER / "templates" / text, names))}
        value = templar.render(Text(text), names)
        # Templar leaves it to its caller what a value that is left out means.
        return {"error": "omitted"} if value is OMIT else {"value": typed(value)}
    except SparkopsError as error:
        return {"error": str(error)}


@pytest.mark.parametrize(("kind", "text"), CASES)
def test_as_ansible_does(
    theirs: dict[Case, Any], names: Any, monkeypatch: pytest.MonkeyPatch, kind: str, text: str
) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    expected, found = theirs[kind, text], json.loads(json.dumps(ours(names, kind, text)))
    same = ("error" in expected) == ("error" in found) and expected.get("value") == found.get("value")
    if text in DIFFERENCES:
        assert not same, "this is listed as a difference, and there is none"
        outcome = "error: " + found["error"] if "error" in found else json.dumps(found["value"])
        assert DIFFERENCES[text]["ours"] in outcome, outcome
    else:
        assert same, f"\nAnsible: {expected}\nsparkops: {found}"


def test_every_filter_and_test_on_every_kind_of_value(theirs: dict[Case, Any], names: Any) -> None:
    different = []
    for kind, text in MATRIX:
        expected, found = theirs[kind, text], json.loads(json.dumps(ours(names, kind, text)))
        if ("error" in expected) != ("error" in found) or expected.get("value") != found.get("value"):
            if text in DIFFERENCES:
                continue
            different.append(f"{text}\n  Ansible: {expected}\n  sparkops: {found}")
    assert not different, "\n".join(different)


def test_the_listed_differences_are_cases() -> None:
    assert set(DIFFERENCES) <= {text for _, text in (*CASES, *MATRIX)}


def test_there_are_enough_of_each_kind() -> None:
    """What the issue asks for: 120 expressions, 40 conditions, 20 files."""
    counts = {kind: sum(1 for one, _ in CASES if one == kind) for kind in ("template", "condition", "file")}
    assert counts["template"] >= 120 and counts["condition"] >= 40 and counts["file"] >= 20
    assert len(set(CASES)) == len(CASES)
