"""The process driver: labs come up, their nodes fall and rise, and nothing stays behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import paramiko
import pytest
import yaml

from sparkops.errors import LabError
from sparkops.lab.lab import Lab
from sparkops.lab.process import processes
from tests.lab.processlab import DRIVER, connected, eventually, execute, home, process_lab

UNIT = """\
[Service]
ExecStart=/bin/sh -c 'while :; do sleep 0.05; done'
[Install]
WantedBy=default.target
"""


def left(folder: Path) -> list[processes.Process]:
    """Every process that belongs to a lab in this folder."""
    return processes.find(lambda entry: os.fsencode(folder) + b"/nodes" in entry)


def put_units(lab: Lab, *names: str) -> None:
    units = home(lab) / ".config" / "systemd" / "user"
    units.mkdir(parents=True, exist_ok=True)
    for name in names:
        (units / f"{name}.service").write_text(UNIT)


def state(lab: Lab, unit: str) -> str:
    """A unit's state, asked for without a login."""
    argv = ["sh", "-c", f"systemctl --user is-active {unit} > state.{unit}"]
    DRIVER.exec(lab, "spark-1", argv)
    return (home(lab) / f"state.{unit}").read_text().strip()


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory):
    with process_lab(
        tmp_path_factory.mktemp("driver") / "lab", count=2, environment={"SPARKOPS_LAB_TOKEN_RATE": "123"}
    ) as up:
        yield up


def test_the_inventory_says_what_a_simulated_node_needs(lab: Lab):
    sparks = yaml.safe_load((lab.dir / "inventory.yml").read_text())["sparks"]
    assert sparks["vars"]["systemd_scope"] == "user"
    assert sparks["vars"]["provision_packages"] == []
    hosts = sparks["hosts"]
    assert list(hosts) == ["spark-1", "spark-2"]
    numbers = [host[key] for host in hosts.values() for key in ("ansible_port", "port")]
    assert len(set(numbers)) == 4
    with urllib.request.urlopen(sparks["vars"]["index_url"] + "vllm/") as page:
        assert b"sha256=" in page.read()


def test_nodes_have_homes_of_their_own(lab: Lab):
    for node in ("spark-1", "spark-2"):
        with connected(lab, node) as connection:
            execute(connection, f"echo {node} > ~/name")
    assert [(home(lab, node) / "name").read_text() for node in ("spark-1", "spark-2")] == ["spark-1\n", "spark-2\n"]


def test_checkpoints_are_sparse_and_whole(lab: Lab):
    models = home(lab) / "models" / "hf"
    files = [path.stat() for path in models.rglob("*.safetensors")]
    assert sum(file.st_size for file in files) > 100e9
    assert sum(file.st_blocks * 512 for file in files) < 200e6
    # A tensor that ends the file was not cut off, and the header was copied: its length comes first.
    (file,) = (models / "Qwen-AgentWorld-35B-A3B-NVFP4").glob("*.safetensors")
    with file.open("rb") as reader:
        header = json.loads(reader.read(int.from_bytes(reader.read(8), "little")))
        end = max(tensor["data_offsets"][1] for name, tensor in header.items() if name != "__metadata__")
        assert reader.tell() + end == file.stat().st_size


def test_exec_is_on_the_node_and_run_is_here(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert DRIVER.exec(lab, "spark-2", ["sh", "-c", "pwd > pwd; exit 4"]) == 4
    assert (home(lab, "spark-2") / "pwd").read_text() == f"{home(lab, 'spark-2')}\n"
    monkeypatch.chdir(tmp_path)
    assert DRIVER.run(lab, ["sh", "-c", "kill -9 $$"]) == 137
    assert DRIVER.run(lab, ["sh", "-c", "pwd > pwd"]) == 0
    assert (tmp_path / "pwd").read_text() == f"{tmp_path}\n"
    with pytest.raises(LabError, match="cannot run no-such-program"):
        DRIVER.run(lab, ["no-such-program"])


def test_units_know_the_token_rate(lab: Lab):
    put_units(lab, "rate")
    unit = home(lab) / ".config/systemd/user/rate.service"
    unit.write_text("[Service]\nExecStart=/bin/sh -c 'echo rate $${SPARKOPS_LAB_TOKEN_RATE} > rate'\n")
    DRIVER.exec(lab, "spark-1", ["systemctl", "--user", "start", "rate"])
    eventually(lambda: (home(lab) / "rate").exists() and (home(lab) / "rate").read_text() == "rate 123\n")


def test_a_reboot_brings_back_what_is_enabled_and_only_that(lab: Lab):
    put_units(lab, "kept", "lost")
    with connected(lab) as connection:
        execute(connection, "systemctl --user enable --now kept; systemctl --user start lost; loginctl enable-linger")
        channel = connection.open_session()
        channel.exec_command("setsid sleep 1000 & echo $!; wait")
        pid = int(channel.recv(100))
        assert (state(lab, "kept"), state(lab, "lost")) == ("active", "active")
        DRIVER.reboot(lab, "spark-1")
        eventually(lambda: not connection.is_active())
    assert not processes.started(pid)
    eventually(lambda: state(lab, "kept") == "active")
    assert state(lab, "lost") == "inactive"
    DRIVER.exec(lab, "spark-1", ["systemctl", "--user", "disable", "--now", "kept"])


def test_without_lingering_units_start_at_the_first_login(lab: Lab):
    put_units(lab, "lazy")
    DRIVER.exec(lab, "spark-1", ["sh", "-c", "systemctl --user enable lazy; loginctl disable-linger"])
    DRIVER.reboot(lab, "spark-1")
    time.sleep(0.3)
    assert state(lab, "lazy") == "inactive"
    with connected(lab) as connection:
        execute(connection, "true")
    eventually(lambda: state(lab, "lazy") == "active")
    DRIVER.exec(lab, "spark-1", ["systemctl", "--user", "disable", "--now", "lazy"])


def test_poweroff_and_mend(lab: Lab):
    DRIVER.poweroff(lab, "spark-2")
    assert DRIVER.status(lab) == {"spark-1": "running", "spark-2": "off"}
    with pytest.raises(LabError, match="spark-2 is off"):
        DRIVER.exec(lab, "spark-2", ["true"])
    DRIVER.poweroff(lab, "spark-2")
    DRIVER.mend(lab, "spark-2")
    assert DRIVER.status(lab)["spark-2"] == "running"
    with connected(lab, "spark-2") as connection:
        assert execute(connection, "cat name").out == b"spark-2\n"


def test_a_cut_node_works_on_out_of_reach(lab: Lab):
    at = lab.node("spark-1")
    with connected(lab) as connection:
        channel = connection.open_session()
        channel.exec_command("cat > /dev/null; sleep 0.3; touch worked-on")
        DRIVER.cut(lab, "spark-1")
        eventually(lambda: not connection.is_active())
    eventually((home(lab) / "worked-on").exists)
    assert DRIVER.status(lab)["spark-1"] == "cut"
    for _ in range(2):
        with pytest.raises(OSError):
            socket.create_connection((at.address, at.port), timeout=1)
        DRIVER.reboot(lab, "spark-1")  # the cable stays cut
    assert DRIVER.status(lab) == {"spark-1": "cut", "spark-2": "running"}
    DRIVER.mend(lab, "spark-1")
    with connected(lab) as connection:
        assert execute(connection, "true").rc == 0


def test_a_failed_unit_degrades_its_node(lab: Lab):
    put_units(lab, "bad")
    (home(lab) / ".config/systemd/user/bad.service").write_text("[Service]\nExecStart=/bin/false\n")
    DRIVER.exec(lab, "spark-1", ["systemctl", "--user", "start", "bad"])
    eventually(lambda: DRIVER.status(lab)["spark-1"] == "degraded")
    DRIVER.exec(lab, "spark-1", ["systemctl", "--user", "reset-failed"])
    assert DRIVER.status(lab)["spark-1"] == "running"


def test_a_node_that_is_not_there(lab: Lab):
    with pytest.raises(LabError, match="no node 'spark-9'"):
        DRIVER.reboot(lab, "spark-9")


def test_labs_side_by_side_and_nothing_left_of_one_that_is_down(tmp_path: Path):
    with process_lab(tmp_path / "lab") as first, process_lab(tmp_path / "lab-2") as second:
        assert first.nodes[0].port != second.nodes[0].port
        put_units(first, "busy")
        with connected(first) as connection:
            execute(
                connection,
                "systemctl --user start busy; setsid sh -c 'trap : TERM; while :; do sleep 1; done' > /dev/null 2>&1 &",
            )
            assert len(left(first.dir)) >= 4
            DRIVER.down(first)
        assert left(first.dir) == []
        assert DRIVER.status(second) == {"spark-1": "running"}
        DRIVER.down(first)
        first.remove()
        assert not first.dir.exists()
    assert left(tmp_path) == []


def test_down_after_up_was_killed(tmp_path: Path):
    folder = tmp_path / "lab"
    script = "import sys; from pathlib import Path; from tests.lab import processlab as p; "
    script += "p.process_lab(Path(sys.argv[1]), 2).__enter__()"
    with subprocess.Popen([sys.executable, "-c", script, str(folder)], cwd=Path(__file__).parents[2]) as up:
        eventually(lambda: left(folder), seconds=30)
        up.send_signal(signal.SIGKILL)
    lab = Lab.load(folder)
    DRIVER.down(lab)
    assert left(folder) == []
    lab.remove()


def test_sudo_passwords_are_refused(tmp_path: Path):
    lab = Lab.create(tmp_path / "lab", "process", 1, passwords={"spark-1": "secret"})
    with pytest.raises(LabError, match="no sudo"):
        DRIVER.up(lab)


def test_a_long_folder_name_is_no_trouble(tmp_path: Path):
    with process_lab(tmp_path / ("a long name with blanks " * 6)) as lab:
        with connected(lab) as connection:
            assert execute(connection, "systemctl --user is-system-running").out == b"running\n"
        assert isinstance(connection, paramiko.Transport)
