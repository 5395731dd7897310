from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from sparkops.cli import collect
from sparkops.cli.collect import Found
from sparkops.cli.main import root
from sparkops.errors import SparkopsError

GONE = {"service": "vllm", "unit": "sparkops-vllm.service", "properties": {"LoadState": "not-found"}}
STARTING = {
    **GONE,
    "properties": {"LoadState": "loaded", "ActiveState": "active", "MainPID": "7"},
    "release": {"number": 2, "recipe": {"name": "fp8"}, "words": ["vllm"], "program": True},
    "uptime": 12.0,
}
HOSTILE = {
    **STARTING,
    "properties": {"LoadState": "loaded", "ActiveState": "failed", "NRestarts": "1"},
    "journal": {"run": ["ValueError: gone\x1b[2J\x1b]0;title\x07\u202e"]},
}


def evidence(result: dict[str, Any]) -> Found:
    return Found({"serving_evidence": {**result, "state": "ok"}})


@pytest.fixture
def doctor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "hosts.yml").write_text("all:\n  hosts:\n    a: {}\n    b: {}\n")

    def run(found: dict[str, Found], code: int, *words: str) -> Result:
        monkeypatch.setattr(collect, "collect", lambda *_, **__: (found, code))
        return CliRunner().invoke(
            root, ["-i", str(tmp_path / "hosts.yml"), "doctor", *words], standalone_mode=False, obj={}
        )

    return run


@pytest.mark.parametrize(
    ("result", "code", "wanted"),
    [
        (STARTING, 0, 0),
        (GONE, 0, 1),
        (GONE, 4, 1),
        (STARTING, 4, 4),
        (GONE, 130, 130),
        (GONE, 5, 5),
        (STARTING, 1, 1),
    ],
)
def test_exit_codes(doctor: Any, result: dict[str, Any], code: int, wanted: int) -> None:
    assert doctor({"a": evidence(result)}, code).return_value == wanted
    document = json.loads(doctor({"a": evidence(result)}, code, "--json").output)
    assert document["exit_code"] == wanted


def test_one_document(doctor: Any) -> None:
    found = {"a": evidence(GONE), "b": Found(trouble="no route to host")}
    nodes = json.loads(doctor(found, 4, "--json").output)["nodes"]
    assert (nodes["a"]["state"], nodes["a"]["trouble"]) == ("failing", None)
    (finding,) = nodes["a"]["findings"]
    keys = {"id", "title", "severity", "precedence", "cause", "evidence", "cure", "consequence"}
    assert (finding["id"], set(finding)) == ("not-deployed", keys)
    assert nodes["b"] == {"state": "unknown", "summary": "", "findings": [], "trouble": "no route to host"}


def test_text(doctor: Any) -> None:
    found = {"a": evidence(GONE), "b": Found(trouble="no route to host"), "c": evidence(STARTING)}
    lines = doctor(found, 4).output.splitlines()
    assert lines[0] == "a  failing  vllm: no release"
    assert lines[1] == "  failure: Nothing is deployed here [not-deployed]"
    assert [line.split()[0] for line in lines[2:5]] == ["cause", "evidence", "cure"]
    assert lines[5:] == [
        "b  could not be examined: no route to host",
        "c  starting  fp8, release 2, port 8000, up 12 s",
    ]


def test_what_a_node_has_logged_is_no_command_to_the_terminal(doctor: Any) -> None:
    output = doctor({"a": evidence(HOSTILE)}, 0).output
    assert "ValueError: gone" in output
    assert not {"\x1b", "\x07", "\u202e"} & set(output)


def test_a_pattern_that_matches_nothing(tmp_path: Path) -> None:
    (tmp_path / "hosts.yml").write_text("all:\n  hosts:\n    a: {}\n")
    with pytest.raises(SparkopsError, match="nope"):
        CliRunner().invoke(
            root, ["-i", str(tmp_path / "hosts.yml"), "doctor", "nope"], standalone_mode=False, catch_exceptions=False
        )
