"""systemd_unit against the process lab's manager; test_on_systemd.py has the same on a node that boots systemd."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sparkops.lab.process.driver import sandbox
from sparkops.node import systemd
from sparkops.node.api import Failure
from sparkops.node.modules import systemd_unit
from tests.lab.processlab import process_lab

UNIT = """[Unit]
Description={name} 'a "b" $c %% \\\\ käse
[Service]
ExecStart=/bin/sh -c "{script}"
Restart=always
RestartSec=0.1
[Install]
WantedBy=default.target
"""
SERVES = "while :; do sleep 0.05; done"


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with process_lab(tmp_path_factory.mktemp("units") / "lab") as lab:
        yield sandbox(lab, "spark-1")


@pytest.fixture
def unit(
    box: Any, node: Any, apply: Any, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Any]:
    """unit(state=..., ...): the task for a unit of the test's own, in the user's scope."""
    # Long enough for what ends at once.
    monkeypatch.setattr(systemd_unit, "SETTLE", 0.25)
    node.env = box.environment()
    node.home = str(box.home)
    name = "t" + str(abs(hash(request.node.name)))

    def run(check: bool = False, script: str = SERVES, **args: Any) -> Any:
        values = {"name": name, "content": UNIT.format(name=name, script=script), "scope": "user", **args}
        node.ran.clear()
        return apply("systemd_unit", check=check, **values)

    run.name = name  # type: ignore[attr-defined]
    yield run
    run(state="absent")


def show(node: Any, name: str) -> dict[str, str]:
    return systemd.Manager(node, "user").show(f"{name}.service")


def test_written_enabled_started_once(box: Any, node: Any, unit: Any) -> None:
    path = box.units / f"{unit.name}.service"
    checked = unit(check=True, state="started", enabled=True)
    assert (checked.state, path.exists()) == ("changed", False)
    assert "+[Install]" in checked.diff
    done = unit(state="started", enabled=True)
    assert done.state == "changed"
    assert {"unit written", "enabled", "started"} <= set(done.result["actions"])
    assert (done.result["active"], done.result["enabled"], done.result["pid"] > 1) == ("active", "enabled", True)
    assert "käse" in path.read_text()
    for check in (True, False):
        again = unit(check=check, state="started", enabled=True)
        assert (again.state, again.result["pid"]) == ("ok", done.result["pid"])
    assert len([argv for argv in node.ran if argv[0] == "systemctl"]) == 1, "a converged unit costs one systemctl"


def test_another_text_restarts_it_once(unit: Any) -> None:
    pid = unit(state="started").result["pid"]
    other = {"script": "true; " + SERVES, "state": "started"}
    assert unit(check=True, **other).result["actions"] == [
        "unit written",
        "daemon-reload",
        "restarted (its unit changed)",
    ]
    done = unit(**other)
    assert [action.split(" (")[0] for action in done.result["actions"]] == [
        "unit written",
        "daemon-reload",
        "restarted",
    ]
    assert done.result["pid"] != pid
    assert unit(**other).state == "ok"


def test_a_run_that_was_killed_after_writing_is_healed(box: Any, unit: Any) -> None:
    pid = unit(state="started").result["pid"]
    time.sleep(0.02)
    text = UNIT.format(name=unit.name, script="true; " + SERVES)
    (box.units / f"{unit.name}.service").write_text(text)
    for reload in (False, True):
        if reload:
            subprocess.run(["systemctl", "--user", "daemon-reload"], env=box.environment(), check=True)
        checked = unit(check=True, content=text, state="started")
        assert checked.state == "changed"
    done = unit(content=text, state="started")
    assert (done.state, done.result["pid"] != pid) == ("changed", True)
    assert unit(content=text, state="started").state == "ok"


def test_a_watched_link_that_moved_restarts_it(tmp_path: Path, unit: Any) -> None:
    for name in ("1", "2"):
        (tmp_path / name).mkdir()
    link = tmp_path / "current"
    args = {"state": "started", "watch": [str(link)]}
    assert unit(check=True, **args).state == "changed"
    link.symlink_to("1")
    pid = unit(**args).result["pid"]
    (tmp_path / "1/file").touch()
    assert unit(**args).state == "ok", "what the link points to is not watched"
    time.sleep(0.02)
    link.unlink()
    link.symlink_to("2")
    assert unit(check=True, **args).state == "changed"
    done = unit(**args)
    assert (done.result["actions"], done.result["pid"] != pid) == ([f"restarted ({link} is newer)"], True)
    assert unit(**args).state == "ok"
    os.utime(link, (time.time() + 3600,) * 2, follow_symlinks=False)
    assert unit(**args).state == "ok", "a time in the future would restart it for ever"


def test_a_task_before_may_ask_for_the_restart(unit: Any) -> None:
    assert "started" in unit(state="started", restart=True).result["actions"]
    pid = unit(state="started").result["pid"]
    assert unit(check=True, state="started", restart=True).state == "changed"
    done = unit(state="started", restart=True)
    assert (len(done.result["actions"]), done.result["pid"] != pid) == (1, True)
    assert unit(state="started", restart=False).state == "ok"


def test_what_is_to_be_watched_may_be_made_by_an_earlier_task(tmp_path: Path, unit: Any) -> None:
    unit(state="started")
    assert unit(check=True, state="started", watch=[f"{tmp_path}/gone"]).state == "unknown"


def test_stopped_disabled_restarted_absent(box: Any, node: Any, unit: Any) -> None:
    pid = unit(state="started", enabled=True).result["pid"]
    assert unit(content=None, state="restarted").result["pid"] != pid
    assert unit(check=True, state="stopped").state == "changed"
    assert unit(state="stopped", enabled=False).result["actions"] == ["disabled", "stopped"]
    assert unit(state="stopped", enabled=False).state == "ok"
    assert unit(check=True, state="absent").state == "changed"
    assert (box.units / f"{unit.name}.service").exists()
    assert unit(state="absent").state == "changed"
    assert not (box.units / f"{unit.name}.service").exists()
    assert unit(state="absent").state == "ok"


@pytest.mark.parametrize(
    "script", ["echo boom-at-start >&2; exit 3", "/no/such/program; sleep 0.2; echo boom-at-start; exit 1"]
)
def test_a_unit_that_ends_fails_with_its_journal(unit: Any, script: str) -> None:
    with pytest.raises(Failure, match="boom-at-start") as caught:
        unit(script=script, state="started")
    assert any("boom-at-start" in line for line in caught.value.result["journal"])
    assert len(caught.value.result["journal"]) <= 20
    assert "started" in caught.value.result["actions"]


def test_a_unit_without_content_must_exist(unit: Any) -> None:
    assert unit(check=True, content=None, state="started").state == "unknown"
    with pytest.raises(Failure, match="is not-found on this node"):
        unit(content=None, state="started")


@pytest.mark.parametrize(
    "name", ["my-service; whoami", "../x", "a/b", "-x", "", ".x", "a b", "a\nb", "$(x)", "x" * 260, "a\0"]
)
def test_hostile_names(unit: Any, node: Any, name: str) -> None:
    with pytest.raises(Failure, match="no name of a unit"):
        unit(name=name, state="started")
    assert node.ran == []


def test_names() -> None:
    assert systemd.unit_name("vllm") == "vllm.service"
    assert systemd.unit_name("vllm@8000.service") == "vllm@8000.service"
    assert systemd.unit_name("x.timer") == "x.timer"


def test_the_system_scope_needs_root(apply: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(Failure, match="become: true"):
        apply("systemd_unit", name="x", content="", state="started")


def test_no_manager_and_no_systemctl(node: Any, apply: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    node.program("systemctl", "#!/bin/sh\necho 'Failed to connect to bus: No medium found' >&2\nexit 1\n")
    args = {"name": "x", "content": "[Service]\n", "scope": "user", "state": "started"}
    assert apply("systemd_unit", check=True, **args).state == "changed"
    with pytest.raises(Failure, match="no user systemd answers: Failed to connect to bus"):
        apply("systemd_unit", **args)
    monkeypatch.setattr(node, "which", lambda _: None)
    with pytest.raises(Failure, match="no systemctl"):
        apply("systemd_unit", **args)


def test_the_user_s_manager_is_found_in_a_bare_session(node: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    manager = systemd.Manager(node, "user")
    runtime = f"/run/user/{os.geteuid()}"
    assert manager.environment()["XDG_RUNTIME_DIR"] == runtime
    assert manager.environment()["DBUS_SESSION_BUS_ADDRESS"] == f"unix:path={runtime}/bus"
    assert manager.folder() == f"{node.home}/.config/systemd/user"


def test_properties() -> None:
    found = systemd.properties("ActiveState=active\nExecStart={ path=/x ; argv[]=/x a=b }\n\nEmpty=\n")
    assert found == {"ActiveState": "active", "ExecStart": "{ path=/x ; argv[]=/x a=b }", "Empty": ""}
    assert systemd.number({"NRestarts": "[not set]"}, "NRestarts") == 0
