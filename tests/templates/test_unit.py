"""templates/vllm.service.j2 as text, in both scopes; tests/e2e/test_unit.py has it run."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sparkops.lab.process.systemd.unitfile import Sections, parse
from sparkops.playbook.template import Templar
from sparkops.recipes.load import Catalogue
from sparkops.serving.command import shutdown_timeout

TEMPLATES = Path(__file__).parents[2] / "templates"


def text(scope: str, **values: Any) -> str:
    names = {
        "service": "vllm",
        "current": "/opt/sparkops/releases/vllm/current",
        "home_path": "/opt/sparkops",
        "unit_scope_is_system": scope == "system",
        "service_user": "spark",
        "ansible_env": {"HOME": "/home/spark"},
        "memory_wait": 120,
        "shutdown_timeout": 60,
        **values,
    }
    return Templar().render_file(TEMPLATES / "vllm.service.j2", names)


def service(sections: Sections) -> dict[str, str]:
    return dict(sections["Service"])


@pytest.mark.parametrize("scope", ["system", "user"])
def test_a_plain_unit_has_no_quotes_and_odd_folders_stay_one_word(scope: str) -> None:
    assert '"' not in text(scope)
    home = '/srv/100% "spark" ops'
    said = service(parse(text(scope, home_path=home, current=f"{home}/releases/vllm/current",
                              ansible_env={"HOME": "/home/jane doe"})))  # fmt: skip
    plain = '/srv/100%% "spark" ops/releases/vllm'
    word = '"/srv/100%% \\"spark\\" ops/releases/vllm'
    assert (said["EnvironmentFile"], said["ExecStart"]) == (f"{plain}/current/env", f'{word}/current/run"')
    assert said["ExecStartPre"] == f'-{word}/guard" 120'
    if scope == "system":
        assert (said["ReadWritePaths"], said["InaccessiblePaths"]) == (f'{word}"', '"-/home/jane doe/.ssh"')
    else:
        assert said["WorkingDirectory"] == "/home/jane doe"


@pytest.mark.parametrize("scope", ["system", "user"])
def test_it_stops_and_starts_as_the_engine_needs(scope: str) -> None:
    unit = parse(text(scope))
    said = service(unit)
    assert (said["Restart"], said["KillMode"], said["Type"]) == ("always", "mixed", "exec")
    assert int(said["TimeoutStopSec"]) > shutdown_timeout(Catalogue().recipe("fp8")) + 30
    assert int(said["TimeoutStartSec"]) > 120 + 60
    assert said["ExecStartPre"] == "-/opt/sparkops/releases/vllm/guard 120"
    assert int(said["LimitNOFILE"]) == 65535
    # Five starts that each wait for memory, take as long as a recipe lets them, and fail, still count as a loop.
    longest = 120 + Catalogue().recipe("fp8").expect.ready_within + int(said["RestartSec"])
    about = dict(unit["Unit"])
    assert int(about["StartLimitIntervalSec"]) > longest * int(about["StartLimitBurst"])


def test_waits_follow_the_variables() -> None:
    said = service(parse(text("system", memory_wait=600, shutdown_timeout=300)))
    assert said["ExecStartPre"].endswith("guard 600")
    assert int(said["TimeoutStartSec"]) > 600 + 60
    assert int(said["TimeoutStopSec"]) > 300 + 30


def test_only_the_system_s_manager_is_asked_for_what_takes_root() -> None:
    system, user = (service(parse(text(scope))) for scope in ("system", "user"))
    assert system["User"] == "spark"
    only_root = {"User", "LimitMEMLOCK", "CapabilityBoundingSet", "PrivateTmp", "TemporaryFileSystem", "ProtectSystem"}
    assert only_root <= set(system)
    assert not only_root & set(user)
    assert user["NoNewPrivileges"] == user["RestrictSUIDSGID"] == "yes"


@pytest.mark.parametrize(
    "broken",
    [
        # JIT compilers write code and run it; the GPU's device files; models and caches; a device rule of its own.
        *("MemoryDenyWriteExecute", "PrivateDevices", "DevicePolicy", "ProtectHome", "ProtectClock"),
        # A /proc of its own, where a container's meminfo and boot id are not what the rest of the node sees.
        *("ProtectKernelTunables", "ProtectControlGroups", "ProtectProc", "ProcSubset", "PrivateUsers", "RemoveIPC"),
    ],
)
def test_what_would_break_a_copy_is_left_out(broken: str) -> None:
    assert broken not in service(parse(text("system")))


@pytest.mark.parametrize("scope", ["system", "user"])
def test_systemd_knows_every_word_of_it(scope: str, tmp_path: Path) -> None:
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is not on this machine")
    run = tmp_path / "current/run"
    run.parent.mkdir()
    run.write_text("#!/bin/sh\n")
    run.chmod(0o755)
    unit = tmp_path / "sparkops-vllm.service"
    unit.write_text(text(scope, current=str(run.parent), service_user="root"))
    done = subprocess.run(
        ["systemd-analyze", *(["--user"] if scope == "user" else []), "--man=no", "verify", str(unit)],
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", "XDG_RUNTIME_DIR": str(tmp_path)},
    )
    assert "sparkops-vllm" not in done.stderr, done.stderr
