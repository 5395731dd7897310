"""The verbs that answer questions: what they print of what nodes have told, and their exit codes."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from sparkops.cli import collect, reboot, status, verify
from sparkops.cli.collect import Found
from sparkops.cli.main import VERBS, root
from sparkops.cli.options import QUIET, Changing, Globals
from sparkops.errors import InputError

GONE = Found(trouble="no route to host")
COPY: dict[str, Any] = {
    "service": "vllm",
    "unit_state": "active",
    "since": 100.0,
    "release": 3,
    "confirmed": True,
    "back_from": None,
    "recipe": "fp8",
    "url": "http://127.0.0.1:8000",
    "model": "m",
    "health": 200,
    "running": 2.0,
    "waiting": 0.0,
    "tok_s": 38.27,
    "kv_use": 0.5,
    "drift": [],
    "patches": {"guard": "applied"},
    "engine": "e",
    "kernel_then": "6.17",
    "driver_then": "580",
}
NODE: dict[str, Any] = {
    "services": [COPY],
    "mem_available": 2**33,
    "mem_free": 2**32,
    "power_w": 16.0,
    "temperature_c": 42.0,
    "driver": "580",
    "kernel": "6.17",
    "reboot_pending": False,
}
NOTHING = dict.fromkeys(("since", "recipe", "health", "running", "tok_s", "kv_use", "drift", "patches", "driver_then"))


def told(**change: Any) -> Found:
    copy = {**COPY, **{key: value for key, value in change.items() if key in COPY}}
    node = {**NODE, **{key: value for key, value in change.items() if key not in COPY}}
    return Found({"serving_status": {"services": [copy], **{k: v for k, v in node.items() if k != "services"}}})


def drifted(items: dict[str, Any], drift: list[str] | None = None) -> Found:
    return Found({"serving_drift": {"state": "ok", "items": items, "drift": drift}})


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "hosts.yml").write_text("all:\n  hosts:\n    a: {}\n    b: {}\n")

    def run(found: dict[str, Found], code: int, *words: str) -> Result:
        monkeypatch.setattr(collect, "collect", lambda *_, **__: (found, code))
        return CliRunner().invoke(root, ["-i", str(tmp_path / "hosts.yml"), *words], standalone_mode=False, obj={})

    return run


@pytest.mark.parametrize("verb", [*VERBS])
def test_a_verb_s_help_imports_no_ssh(verb: str) -> None:
    code = f"import sys; from sparkops.cli.main import main\ntry: main([{verb!r}, '--help'])\nexcept SystemExit: pass\n"
    code += "print(sorted({'paramiko', 'fabric', 'jinja2', 'rich'} & set(sys.modules)), file=sys.stderr)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (ran.stdout.startswith("Usage: "), ran.stderr.strip()) == (True, "[]")


@pytest.mark.parametrize(
    ("change", "column", "wanted"),
    [
        ({}, "drift", "none"),
        ({}, "patches", "1 of 1"),
        ({}, "tok/s", "38.3"),
        ({}, "KV", "50%"),
        ({}, "free GiB", "8.0"),
        ({}, "up", "1 min"),
        ({}, "notes", ""),
        ({"drift": ["env", "unit"]}, "drift", "env, unit"),
        ({"patches": {"a": "edited", "b": "applied"}}, "patches", "1 of 2"),
        ({"patches": {}}, "patches", "none"),
        ({"driver": "590"}, "notes", "driver 580 -> 590"),
        ({"kernel": "6.18", "reboot_pending": True}, "notes", "kernel 6.17 -> 6.18; reboot pending"),
        ({"confirmed": False, "back_from": 4}, "notes", "not confirmed; went back from release 4"),
        ({"kernel_then": None, "driver_then": None, "driver": "590"}, "notes", ""),
    ],
)
def test_a_copy_s_line(change: dict[str, Any], column: str, wanted: str) -> None:
    (row,) = status.rows("a", told(**change), 160.0)
    assert dict(zip(status.COLUMNS, row, strict=True))[column] == wanted


def test_what_is_not_known_is_a_dash_and_null(ask: Any) -> None:
    (row,) = status.rows("a", told(**NOTHING), 0.0)
    line = dict(zip(status.COLUMNS, row, strict=True))
    assert {line[name] for name in ("up", "recipe", "health", "running", "tok/s", "KV", "drift", "patches")} == {"-"}
    said = json.loads(ask({"a": told(**NOTHING, kernel_then=None), "b": GONE}, 4, "status", "--json").output)
    assert said["a"]["services"][0]["changed_since"] is None
    assert said["a"]["services"][0]["drift"] is None
    assert said["b"] == {"services": [], "trouble": "no route to host"}
    rows = status.rows("b", GONE, 0.0)
    assert (rows[0][4], rows[0][-1], len(rows[0])) == ("unreachable", "no route to host", len(status.COLUMNS))
    (row,) = status.rows("a", Found({"serving_status": {**NODE, "services": [], "reboot_pending": True}}), 0.0)
    assert (row[4], row[-1]) == ("nothing deployed", "reboot pending")


def test_all_services_of_a_node_have_a_line() -> None:
    both = [COPY, {**COPY, "service": "side"}]
    rows = status.rows("a", Found({"serving_status": {**NODE, "services": both}}), 0.0)
    assert [row[:2] for row in rows] == [["a", "vllm"], ["a", "side"]]


def test_releases(ask: Any) -> None:
    one = {
        "service": "vllm", "release": 2, "current": True, "state": "confirmed", "recipe": "fp8", "engine": None,
        "who": "me@here",
        "when": "today", "verb": "sparkops deploy", "kernel": None, "driver": None, "trial_ends": None,
    }  # fmt: skip
    found = {"a": Found({"release_list": {"releases": [one], "state": "ok"}}), "b": GONE}
    done = ask(found, 4, "releases")
    assert (done.return_value, done.stderr) == (4, "b: no route to host\n")
    head, line = done.stdout.splitlines()
    assert head.split() == ["node", "service", "release", "state", "recipe", "engine", "who", "when", "verb"]
    assert line.split() == ["a", "vllm", "2", "*", "confirmed", "fp8", "-", "me@here", "today", "deploy"]
    assert json.loads(ask(found, 4, "releases", "--json").output) == {
        "a": {"releases": [one], "trouble": None},
        "b": {"releases": None, "trouble": "no route to host"},
    }


@pytest.mark.parametrize(
    ("b", "code", "wanted"),
    [
        (drifted({"driver": "580"}, []), 0, 0),
        (drifted({"driver": "580"}), 0, 0),
        (drifted({"driver": "590"}, []), 0, 1),
        (drifted({"driver": "580"}, ["unit"]), 0, 1),
        (GONE, 4, 4),
        (drifted({"driver": "590"}, []), 4, 1),
        (drifted({"driver": "590"}, []), 130, 130),
    ],
)
def test_diff_s_exit_code(ask: Any, b: Found, code: int, wanted: int) -> None:
    found = {"a": drifted({"driver": "580"}, []), "b": b}
    assert ask(found, code, "diff").return_value == wanted
    assert json.loads(ask(found, code, "diff", "--json").output)["exit_code"] == wanted


def test_what_diff_prints(ask: Any) -> None:
    a, b = drifted({"driver": "580", "x": None}, []), drifted({"driver": "590.1\x1b[2J", "x": "1"}, ["unit"])
    done = ask({"a": a, "b": b, "c": drifted({"driver": "580", "x": "1"}, [])}, 0, "diff")
    assert done.stdout.splitlines() == [
        "driver",
        "  580        a, c",
        "  590.1 [2J  b",
        "x",
        "  1  b, c",
        "  -  a",
        "edited since the deploy",
        "  b  unit",
    ]
    assert ask({"a": a}, 0, "diff").stdout == "no differences (1 node)\n"


RELEASE = {"release": 1, "confirmed": True, "recipe": {"name": "fp8"}, "drift": [], "engine": "e", "patches": {}}
GOOD = {**RELEASE, "contents": {"packages": 1, "problems": []}, "checkpoint": {"path": "/m", "revision": None}}


@pytest.mark.parametrize(
    ("change", "code", "wanted"), [({}, 0, 0), ({"drift": ["run"]}, 0, 1), ({"drift": ["run"]}, 4, 1), ({}, 4, 4)]
)
def test_verify_s_exit_code(ask: Any, change: dict[str, Any], code: int, wanted: int) -> None:
    found = {"a": Found({"serving_drift": {**GOOD, **change, "state": "ok"}}), "b": GONE}
    done = ask(found, code, "verify")
    assert done.return_value == wanted
    assert done.stdout.splitlines()[1].split() == ["a", "release", "pass", "1,", "fp8"]
    assert done.stdout.splitlines()[-1].split()[:3] == ["b", "reached", "unknown"]
    assert json.loads(ask(found, code, "verify", "--json").output)["exit_code"] == wanted


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_reboot_asks_first(ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="Reboot a, b, one after the other"):
        raise ask({}, 0, "verify", "all", "--reboot").exception
    assert isinstance(ask({}, 0, "verify", "--reboot", "--yes").exception, InputError), "which nodes?"
    monkeypatch.setattr("sys.stdin", Terminal("n\ny\n"))
    with pytest.raises(click.Abort):
        verify._confirm(["a"], yes=False)
    verify._confirm(["a"], yes=False)


def test_nodes_are_rebooted_in_turn_and_a_failure_ends_it(ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    went: list[str] = []

    def fake(given: Globals, node: str, how: Changing) -> tuple[str, int]:
        went.append(node)
        return "", 0

    monkeypatch.setattr(reboot, "reboot", fake)
    good = Found({"serving_drift": {**GOOD, "state": "ok"}})
    bad = Found({"serving_drift": {**GOOD, "drift": ["unit"], "state": "ok"}})
    words = ("verify", "all", "--reboot", "--yes", "--json")
    done = ask({"a": good, "b": good}, 0, *words)
    assert (done.return_value, went) == (0, ["a", "b"])
    went.clear()
    done = ask({"a": bad, "b": bad}, 0, *words)
    assert (done.return_value, went) == (1, ["a"])
    (last,) = json.loads(done.stdout)["nodes"]["b"]["checks"]
    assert last["detail"] == "not rebooted: the node before has failed"


def boots(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ids: list[str], code: int = 0) -> tuple[str, int]:
    """What `reboot` makes of the boots' ids that a node tells one after the other ("": it can't be reached)."""
    (tmp_path / "hosts.yml").write_text("all:\n  hosts:\n    a: {}\n")

    def fake(place: Any, node: str, values: dict[str, Any], how: Changing, **_: Any) -> tuple[dict[str, Found], int]:
        if values["go"]:
            return {"a": Found(trouble="no sudo")}, code
        now = ids.pop(0) if len(ids) > 1 else ids[0]
        return {"a": Found({"command": {"stdout": now}}) if now else GONE}, 0 if now else 4

    monkeypatch.setattr(reboot, "collect", fake)
    monkeypatch.setattr("time.sleep", lambda _: None)
    given = Globals(None, (str(tmp_path / "hosts.yml"),), False, 0)
    clock = iter(range(0, 10000, 100))
    return reboot.reboot(given, "a", QUIET, clock=lambda: float(next(clock)))


def test_another_boot_is_waited_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert boots(monkeypatch, tmp_path, ["one", "one", "", "", "two"]) == ("", 0)
    assert boots(monkeypatch, tmp_path, [""]) == ("no route to host", 4)
    assert boots(monkeypatch, tmp_path, ["one", "one"]) == (
        "it has not come back within 900 s: it has not gone down",
        4,
    )
    assert boots(monkeypatch, tmp_path, ["one", ""]) == ("it has not come back within 900 s: no route to host", 4)
    assert boots(monkeypatch, tmp_path, ["one"], code=1) == ("no sudo", 1)


def test_logs_f_takes_since_or_n(ask: Any) -> None:
    done = ask({}, 0, "logs", "-f", "-n", "1", "--since", "today")
    assert isinstance(done.exception, click.UsageError)


def test_logs_are_merged(ask: Any) -> None:
    found = {
        "a": Found({"journal": {"lines": ["2026-11-30T12:00:02.0+0000 second"]}}),
        "b": Found({"journal": {"lines": ["2026-11-30T12:00:01.0+0000 first"]}}),
        "c": GONE,
    }
    done = ask(found, 4, "logs")
    assert [line.split()[::2] for line in done.stdout.splitlines()] == [["b", "first"], ["a", "second"]]
    assert (done.return_value, done.stderr) == (4, "c: no route to host\n")
