"""Executable inventories that go wrong. Those that go right are compared in tests/differential."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from sparkops.errors import InputError
from sparkops.inventory import Inventory, load, script_source


def script(tmp_path: Path, body: str) -> str:
    path = tmp_path / "inv.sh"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def inventory(tmp_path: Path, body: str) -> Inventory:
    return load([script(tmp_path, body)])


@pytest.mark.parametrize(
    ("body", "says", "hint"),
    [
        ("echo 'no credentials' >&2; exit 3", "exit code 3", "it said: no credentials"),
        ("kill -9 $$", "exit code -9", None),
        ("true", "not JSON", "it wrote nothing"),
        ("echo '{\"web\": [}'", "line 1 column 10", None),
        ("echo 'oops' >&2; echo '[1'", "not JSON", "it said: oops"),
        ("echo '[1]'", "a list; an object is needed", None),
        ("printf '\\377'", "UTF-8", None),
        ('echo \'{"web": {"hosts": "w1"}}\'', "'hosts' of the group 'web' is a text", None),
        ('echo \'{"web": {"hosts": [1]}}\'', "a list of names", None),
        ('echo \'{"web": {"hosts": ["-x"]}}\'', "'-x' is not a host name", None),
        ('echo \'{"web": {"vars": []}}\'', "'vars' of the group 'web'", None),
        ('echo \'{"web": {"children": "db"}}\'', "'children' of the group 'web'", None),
        ("echo '{\"\": []}'", "name of a group is empty", None),
        ("echo '{\"_meta\": {}}'", "hostvars", None),
        ("echo '{\"_meta\": null}'", "hostvars", None),
        ('echo \'{"_meta": {"hostvars": {}, "profile": "x"}}\'', "profile", None),
        ('echo \'{"w": ["h"], "_meta": {"hostvars": {"h": 1}}}\'', "variables of 'h' are a number", None),
        ('test $1 = --list && echo \'{"w": ["h"]}\' || exit 4', "exit code 4", None),
        ('echo \'{"w": {"vars": {"p": {"__ansible_vault": "x"}}}}\'', "ansible-vault", None),
        ('echo \'{"a": {"children": ["b"]}, "b": {"children": ["a"]}}\'', "b > a > b", None),
    ],
)
def test_wrong_answers_name_the_script(tmp_path: Path, body: str, says: str, hint: str | None) -> None:
    with pytest.raises(InputError) as caught:
        inventory(tmp_path, body)
    assert caught.value.where == str(tmp_path / "inv.sh")
    assert says in caught.value.message
    if hint:
        assert caught.value.hint == hint


def test_one_that_never_answers_is_ended_with_all_it_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script_source, "TIMEOUT", 0.5)
    start = time.monotonic()
    with pytest.raises(InputError, match=r"no answer to --list within 0.5 s"):
        inventory(tmp_path, f"echo $$ > {tmp_path}/pid; sleep 600 & echo $! > {tmp_path}/child; wait")
    assert time.monotonic() - start < 5
    for name in ("pid", "child"):
        pid = int((tmp_path / name).read_text())
        for _ in range(50):
            try:
                state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            except (FileNotFoundError, ProcessLookupError):
                break
            if state == "Z":
                break
            time.sleep(0.05)
        else:
            pytest.fail(f"{name} still runs")


def test_what_it_says_on_stderr_is_kept(tmp_path: Path) -> None:
    found = inventory(tmp_path, 'echo \'token expires soon\' >&2; echo \'{"w": ["h"], "_meta": {"hostvars": {}}}\'')
    assert found.warnings == [f"{tmp_path}/inv.sh: token expires soon"]
    assert list(found.hosts) == ["h"]


def test_an_interpreter_that_is_nowhere(tmp_path: Path) -> None:
    path = tmp_path / "inv"
    path.write_text("#!/nowhere/python\n")
    path.chmod(0o755)
    with pytest.raises(InputError, match="cannot be run") as caught:
        load([str(path)])
    assert caught.value.hint and "#!" in caught.value.hint
