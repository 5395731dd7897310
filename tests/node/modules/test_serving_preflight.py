"""What the module collects, on this machine: a real listener, releases, stand-ins for tools."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sparkops.node.modules import serving_preflight
from sparkops.serving.preflight_evidence import Evidence

MACHINE = os.uname().machine
ID = "vllm-0.24.0-0123456789ab"
SHOW = """\
#!/bin/sh
printf 'Id=sparkops-vllm.service\\nActiveState=active\\nUnitFileState=enabled\\nMainPID=%s\\n\\n' {pid}
printf 'Id=sparkops-b.service\\nActiveState=inactive\\nUnitFileState=disabled\\nMainPID=0\\n'
"""


@pytest.fixture
def listening() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def place(tmp_path: Path, node: Any) -> Path:
    """A node with two services, of which `vllm` runs: as this very process."""
    node.program("systemctl", SHOW.format(pid=os.getpid()))
    node.program("nvidia-smi", "#!/bin/sh\necho 580.95.05\n")
    model = tmp_path / "models/m"
    model.mkdir(parents=True)
    (model / "config.json").write_text("{}")
    (model / "model.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}" + bytes(500))
    for name, port in (("vllm", 8000), ("b", 8001)):
        release(tmp_path, name, port)
    return tmp_path


def release(place: Path, service: str, port: int) -> None:
    folder = place / "sparkops/releases" / service / "1"
    folder.mkdir(parents=True)
    (folder / "run").write_text(
        f"#!/bin/sh\nexec /bin/sh serve {place}/models/m \\\n  --host 127.0.0.1 --port {port}\n"
    )
    recipe = {"name": "fp8", "kv_cache_memory_bytes": 1, "description": "long"}
    (folder / "recipe.json").write_text(json.dumps(recipe))
    (folder.parent / "current").symlink_to("1")


def collect(place: Path, apply: Any, **more: Any) -> Evidence:
    locked = {"id": ID, "lock": "0" * 64, "packages": ["vllm==0.24.0", "ninja==1.13.0"]}
    given = {
        **{"service": "vllm", "home": f"{place}/sparkops", "model_path": f"{place}/models/m"},
        **{"engines": {MACHINE: locked}, "port": 1, **more},
    }
    outcome = apply("serving_preflight", **given)
    assert outcome.state == "ok"
    json.dumps(outcome.result)
    return Evidence.of(outcome.result)


def test_a_node_with_two_services(place: Path, apply: Any, listening: int) -> None:
    seen = collect(place, apply, port=listening)
    assert (seen.architecture, seen.driver.version, seen.unit) == (MACHINE, "580.95.05", "sparkops-vllm.service")
    assert [(one.name, one.own, one.active, one.enabled, one.port) for one in seen.services] == [
        ("b", False, False, False, 8001),
        ("vllm", True, True, True, 8000),
    ]
    assert seen.own is not None
    assert (seen.own.pid, seen.own.resident, seen.own.recipe["kv_cache_memory_bytes"]) == (os.getpid(), 500, 1)
    assert "description" not in seen.own.recipe
    assert seen.others == []
    assert [(one.pid, one.ours) for one in seen.listeners] == [(os.getpid(), True)]
    assert (seen.checkpoint.present, seen.checkpoint.resident) == (True, 500)
    assert seen.memory.total > seen.memory.available > 0
    assert {one.name: one.device for one in seen.disks} == {
        name: place.stat().st_dev for name in ("checkpoint", "engine")
    }
    assert (seen.engine.state, seen.engine.adopted, seen.engine.kin) == ("missing", False, False)
    assert seen.engine.path == f"{place}/sparkops/engines/{ID}"
    assert seen.in_sync in (True, False)


def test_nothing_is_changed_and_a_bare_node_is_none_the_worse(tmp_path: Path, node: Any, apply: Any) -> None:
    node.program("systemctl", "#!/bin/sh\nexit 1\n")
    node.program("nvidia-smi", "#!/bin/sh\necho 'no devices were found'; exit 6\n")
    before = sorted((str(path), path.lstat().st_mtime_ns) for path in tmp_path.rglob("*"))
    for check in (True, False):
        seen = collect(tmp_path, apply, check=check)
        assert (seen.driver.version, seen.driver.error) == (None, "no devices were found")
        assert (seen.services, seen.listeners, seen.checkpoint.present) == ([], [], False)
        assert all(one.free for one in seen.disks)
    assert sorted((str(path), path.lstat().st_mtime_ns) for path in tmp_path.rglob("*")) == before


def test_a_foreign_listener_is_named(place: Path, apply: Any, listening: int) -> None:
    seen = collect(place, apply, port=listening, service="other")
    (one,) = seen.listeners
    assert (one.pid, one.ours) == (os.getpid(), False)
    assert "pytest" in one.command


def test_an_engine_in_place(place: Path, apply: Any) -> None:
    path = place / "sparkops/engines" / ID
    site = path / "lib/python3.12/site-packages"
    (site / "vllm-0.24.0.dist-info").mkdir(parents=True)
    assert collect(place, apply).engine.state == "other"
    noted: dict[str, Any] = {"lock": "0" * 64, "patches": [], "tried": None}
    (path / "sparkops.json").write_text(json.dumps(noted))
    found = collect(place, apply).engine
    assert found.state == "untried"
    assert found.problems == ["there is no program bin/vllm in it", "ninja is missing, locked: 1.13.0"]
    (path / "sparkops.json").write_text(json.dumps({**noted, "lock": "1" * 64}))
    assert "from the lock 111111111111" in collect(place, apply).engine.problems[0]


def test_an_engine_of_the_same_version_beside(place: Path, apply: Any) -> None:
    engines = place / "sparkops/engines"
    for name in ("vllm-0.26.0-aaaaaaaaaaaa", "vllm-0.24.0-bbbbbbbbbbbb.failed", f"{ID}.building-7"):
        (engines / name).mkdir(parents=True)
    assert not collect(place, apply).engine.kin
    (engines / "vllm-0.24.0-cccccccccccc").mkdir()
    assert collect(place, apply).engine.kin


def test_an_environment_to_adopt(place: Path, apply: Any) -> None:
    found = collect(place, apply, engine_path=f"{place}/venv").engine
    assert (found.adopted, found.state, found.problems) == (True, "missing", ["there is no such folder"])


def test_an_architecture_without_a_lock(place: Path, apply: Any) -> None:
    assert collect(place, apply, engines={"sparc": {}}).engine.state == "no_lock"


def test_a_release_that_somebody_has_spoiled(place: Path, apply: Any) -> None:
    folder = place / "sparkops/releases/b/1"
    (folder / "recipe.json").write_text("[1]")
    (folder / "run").write_text("exec 'x --port no")
    (spoiled, _) = collect(place, apply).services
    assert (spoiled.recipe.get("name"), spoiled.resident) == (None, None)


def test_home_is_the_login_user_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/somewhere")
    monkeypatch.delenv("SUDO_UID", raising=False)
    assert serving_preflight.at_home("~/models") == "/somewhere/models"
    monkeypatch.setenv("SUDO_UID", "0")
    assert serving_preflight.at_home("~/models") == "/root/models"
    assert serving_preflight.at_home("/a/~/b") == "/a/~/b"


def test_headers_are_looked_for_beside_the_interpreter(tmp_path: Path) -> None:
    program = tmp_path / "bin/python3.12"
    program.parent.mkdir()
    program.symlink_to(sys.executable)
    real = tmp_path / "real/bin/python3.12"
    real.parent.mkdir(parents=True)
    real.write_text("")
    (tmp_path / "real/include/python3.12").mkdir(parents=True)
    assert not serving_preflight.has_headers(str(real))
    (tmp_path / "real/include/python3.12/Python.h").write_text("")
    assert serving_preflight.has_headers(None, str(tmp_path / "nothing"), str(real))
