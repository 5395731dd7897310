"""The nspawn driver on real containers; needs root and the programs that `lab up` names."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkops.lab.lab import Lab
from sparkops.lab.nspawn.mounts import mount_points
from sparkops.lab.nspawn.processes import arguments, is_namespace, namespace, netns, processes

pytestmark = pytest.mark.lab

LAB: list[str] = [sys.executable, "-c", "from sparkops.cli.lab import lab; lab()"]
PASSWORD = "pass word 'x'"


def lab(verb: str, folder: Path, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*LAB, verb, "--dir", folder, *words], input=stdin, capture_output=True, text=True, check=False
    )


def up(folder: Path, nodes: int, *words: str) -> None:
    done = lab("up", folder, "--driver", "nspawn", "--nodes", str(nodes), *words)
    assert done.returncode == 0, done.stderr


def on(folder: Path, node: str, *argv: str) -> str:
    done = lab("exec", folder, node, "--", *argv)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def ssh(folder: Path, address: str, command: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    options = ["-F", "none", "-o", f'UserKnownHostsFile="{folder}/known_hosts"', "-o", "StrictHostKeyChecking=yes"]
    argv = ["ssh", *options, "-o", "BatchMode=yes", "-i", f"{folder}/id_ed25519", f"spark@{address}", command]
    return lab("run", folder, "--", *argv, stdin=stdin)


def footprint(folder: Path) -> dict[str, set[str]]:
    """What a lab in `folder` has on this machine: mounts, processes, links out here, cgroups, files in /run."""
    words = (str(folder), Lab(folder, "nspawn", []).id)
    links = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout
    found = {
        "mounts": {str(point) for point in mount_points(Path("/proc/self/mountinfo").read_text(), folder)},
        "commands": {" ".join(arguments(pid)) for pid in processes()},
        "cgroups": {str(path) for path in Path("/sys/fs/cgroup").glob("**/sparkops-*")},
        "run": {str(path) for path in Path("/run/systemd/nspawn").glob("*/*")},
    }
    own = {kind: {name for name in names if any(word in name for word in words)} for kind, names in found.items()}
    return {**own, "links": {line.split()[1] for line in links.splitlines()}}


def namespaces(folder: Path) -> list[tuple[int, int]]:
    """The network namespaces that are mounted in a lab."""
    return [found for path in folder.glob("nodes/**/net") if is_namespace(path) and (found := namespace(path))]


def assert_nothing_is_left(folder: Path, links: set[str], inodes: list[tuple[int, int]]) -> None:
    nothing: dict[str, set[str]] = {"mounts": set(), "commands": set(), "cgroups": set(), "run": set()}
    assert footprint(folder) == {**nothing, "links": links}
    assert not [pid for pid in processes() if netns(pid) in inodes]
    assert not folder.exists()


def links() -> set[str]:
    return footprint(Path("/nowhere"))["links"]


@pytest.mark.parametrize("made", ["id_ed25519.pub", "nodes/net", "nodes/spark-2/upper", "nodes/spark-3/console.log"])
def test_down_cleans_up_after_a_killed_up(tmp_path: Path, made: str) -> None:
    before = links()
    folder = tmp_path / "lab"
    with subprocess.Popen([*LAB, "up", "--dir", str(folder), "--driver", "nspawn", "--nodes", "3"]) as process:
        while not (folder / made).exists():
            assert process.poll() is None
        process.kill()
    inodes = namespaces(folder)
    assert lab("down", folder).returncode == 0
    assert_nothing_is_left(folder, before, inodes)


def test_a_killed_build_of_the_base_leaves_no_process_and_no_base(tmp_path: Path) -> None:
    folder = tmp_path / "lab"
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    command = [*LAB, "up", "--dir", str(folder), "--driver", "nspawn", "--nodes", "1"]
    with subprocess.Popen(command, env=environment) as process:
        while not list(tmp_path.glob("cache/sparkops/lab/.bookworm-*.building/root/usr/bin/env")):
            assert process.poll() is None
            time.sleep(0.1)
        process.kill()
    assert lab("down", folder).returncode == 0
    deadline = time.monotonic() + 0.5
    while left := [arguments(pid) for pid in processes() if str(tmp_path) in " ".join(arguments(pid))]:
        assert time.monotonic() < deadline, left
    assert not mount_points(Path("/proc/self/mountinfo").read_text(), tmp_path)
    assert not list(tmp_path.glob("cache/sparkops/lab/bookworm-*"))


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("two") / "a lab, with: blanks"
    up(folder, 2, "--sudo-password", f"spark-2={PASSWORD}", "--token-rate", "40")
    yield folder
    assert lab("down", folder).returncode == 0


FIRST, SECOND = "10.213.1.1", "10.213.1.2"


def test_the_inventory_names_the_nodes_and_no_password(two: Path) -> None:
    import yaml

    text = (two / "inventory.yml").read_text()
    group = yaml.safe_load(text)["sparks"]
    assert group["hosts"]["spark-2"] == {"ansible_host": SECOND, "ansible_port": 22}
    assert group["vars"]["ansible_user"] == "spark"
    assert PASSWORD not in text
    assert (two / "lab.json").stat().st_mode & 0o777 == 0o600


def test_spark_logs_in_over_ssh(two: Path) -> None:
    done = ssh(two, FIRST, "hostname; id -un; cat")
    assert done.stdout == "spark-1\nspark\n", done.stderr
    assert ssh(two, SECOND, "cat", stdin="through").stdout == "through"
    assert ssh(two, FIRST, "exit 7").returncode == 7


def test_nodes_differ(two: Path) -> None:
    ids = {on(two, node, "cat", "/etc/machine-id") for node in ("spark-1", "spark-2")}
    keys = {line.split()[2] for line in (two / "known_hosts").read_text().splitlines()}
    assert len(ids) == len(keys) == 2


def test_sudo_asks_only_where_it_should(two: Path) -> None:
    assert ssh(two, FIRST, "sudo -n id -u").stdout == "0\n"
    refused = ssh(two, SECOND, "sudo -n id -u")
    assert refused.returncode == 1
    assert "password is required" in refused.stderr
    assert ssh(two, SECOND, "sudo -S -p '' id -u", stdin=f"{PASSWORD}\n").stdout == "0\n"


@pytest.mark.parametrize("package", ["ninja-build", "python3-dev", "rsync", "gcc", "jq"])
def test_packages_come_from_the_lab(two: Path, package: str) -> None:
    assert "default" not in on(two, "spark-1", "ip", "route")
    on(two, "spark-1", "apt-get", "install", "-y", package)
    assert on(two, "spark-1", "dpkg-query", "-W", "-f", "${db:Status-Status}", package) == "installed"


def test_apt_update_works(two: Path) -> None:
    lists = ["find", "/var/lib/apt/lists", "-type", "f", "-size", "+0"]
    before = on(two, "spark-2", *lists)
    done = lab("exec", two, "spark-2", "--", "apt-get", "update")
    assert done.returncode == 0
    assert "W:" not in done.stderr
    # The lists that the base came with are those that an update writes.
    assert sorted(before.split()) == sorted(on(two, "spark-2", *lists).split())


def test_wheels_come_from_the_lab(two: Path) -> None:
    url = "http://10.213.0.1:8000/simple/"
    script = (
        f"python3 -m venv v && v/bin/pip -q install --index-url {url} uv && v/bin/uv --version"
        f" && v/bin/uv venv -q w && v/bin/uv pip install -q -p w/bin/python --index-url {url} torch"
        " && w/bin/python -c 'import torch.version; print(torch.version.cuda)'"
    )
    done = ssh(two, FIRST, script)
    assert done.stdout.split()[0] == "uv", done.stderr
    assert done.stdout.split()[-1] == "13.0"


def test_the_node_looks_like_a_spark(two: Path) -> None:
    query = "nvidia-smi --query-gpu=name,driver_version,compute_cap,power.draw,clocks.sm --format=csv,noheader"
    assert ssh(two, FIRST, query).stdout == "NVIDIA GB10, 580.95.05, 12.1, 16.00 W, 2405 MHz\n"
    on(two, "spark-2", "sh", "-c", "echo 570.10 > /etc/sparkops-lab/driver")
    assert ", 570.10, " in ssh(two, SECOND, query).stdout
    models = ssh(two, FIRST, "touch models/hf/mine && stat -c '%U %s %b' models/hf/*/model.safetensors").stdout
    for line in models.splitlines():
        owner, size, blocks = line.split()
        assert owner == "spark"
        assert int(blocks) * 512 < int(size) / 100


@pytest.mark.parametrize("scope", ["--system", "--user"])
def test_units_find_the_token_rate(two: Path, scope: str) -> None:
    run = f"systemd-run {scope} --wait --quiet --pipe printenv SPARKOPS_LAB_TOKEN_RATE"
    done = ssh(two, FIRST, f"sudo -n {run}" if scope == "--system" else run)
    assert done.stdout == "40\n", done.stderr


def test_root_on_a_node_drops_the_page_cache(two: Path) -> None:
    on(two, "spark-1", "sh", "-c", "head -c 50000000 /dev/zero > /root/big; sync; cat /root/big > /dev/null")
    resident = ["fincore", "--bytes", "--noheadings", "--output", "res", "/root/big"]
    assert int(on(two, "spark-1", *resident)) >= 50_000_000
    on(two, "spark-1", "sh", "-c", "echo 1 > /proc/sys/vm/drop_caches")
    assert int(on(two, "spark-1", *resident)) < 1_000_000


def test_a_node_has_a_spark_s_memory_which_a_test_can_change(two: Path) -> None:
    assert "MemTotal:       127611696 kB\n" in on(two, "spark-2", "cat", "/proc/meminfo")
    file = two / "nodes" / "spark-2" / "root/etc/sparkops-lab/meminfo"
    whole = file.read_text()
    for text in (whole.replace("MemAvailable:   123731968", "MemAvailable:     1048576"), whole):
        file.write_text(text)
        assert on(two, "spark-2", "cat", "/proc/meminfo") == text


def test_exec_passes_streams_status_and_signals(two: Path) -> None:
    done = lab("exec", two, "spark-2", "--", "sh", "-c", "cat; echo oops >&2; kill -9 $$", stdin="in")
    assert (done.stdout, done.stderr, done.returncode) == ("in", "oops\n", 137)
    assert lab("exec", two, "spark-2", "--", "no-such-command").returncode == 127
    command = [*LAB, "exec", "--dir", str(two), "spark-2", "--", "sh", "-c", "echo on; exec sleep 1000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 128 + signal.SIGTERM
    assert lab("exec", two, "spark-2", "--", "pgrep", "-x", "sleep").returncode == 1


def test_user_units_and_lingering(two: Path) -> None:
    assert ssh(two, FIRST, "loginctl enable-linger").returncode == 0
    done = ssh(two, FIRST, "systemctl --user is-system-running; systemd-run --user --wait -q -P -- id -un")
    assert done.stdout == "running\nspark\n", done.stderr


def test_a_reboot_comes_back_with_its_journal(two: Path) -> None:
    on(two, "spark-1", "logger", "before the reboot")
    before = on(two, "spark-1", "cat", "/proc/sys/kernel/random/boot_id")
    assert lab("reboot", two, "spark-1").returncode == 0
    assert on(two, "spark-1", "cat", "/proc/sys/kernel/random/boot_id") != before
    assert "before the reboot" in on(two, "spark-1", "journalctl", "-b", "-1", "--no-pager")
    assert ssh(two, FIRST, "systemctl is-system-running").stdout == "running\n"


def test_a_node_that_reboots_itself_comes_back(two: Path) -> None:
    before = ssh(two, FIRST, "cat /proc/sys/kernel/random/boot_id").stdout
    ssh(two, FIRST, "sudo -n systemctl reboot")
    deadline = time.monotonic() + 30
    while (now := ssh(two, FIRST, "cat /proc/sys/kernel/random/boot_id").stdout) in ("", before):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert now


def test_cut_and_mend(two: Path) -> None:
    assert lab("cut", two, "spark-2").returncode == 0
    assert "spark-2: cut" in lab("status", two).stdout
    probe = [sys.executable, "-c", f"import socket; socket.create_connection(('{SECOND}', 22), 1)"]
    assert lab("run", two, "--", *probe).returncode == 1
    assert lab("mend", two, "spark-2").returncode == 0
    assert lab("run", two, "--", *probe).returncode == 0


def test_poweroff_and_mend(two: Path) -> None:
    assert lab("poweroff", two, "spark-2").returncode == 0
    states = json.loads(lab("status", two, "--json").stdout)["nodes"]
    assert (states["spark-1"]["state"], states["spark-2"]["state"]) == ("running", "off")
    refused = lab("exec", two, "spark-2", "--", "true")
    assert refused.returncode
    assert "spark-2 is off" in refused.stderr
    assert lab("mend", two, "spark-2").returncode == 0
    assert ssh(two, SECOND, "hostname").stdout == "spark-2\n"


def test_up_refuses_a_lab_that_is_up(two: Path) -> None:
    before = (two / "lab.json").read_bytes()
    done = lab("up", two, "--driver", "nspawn", "--nodes", "1")
    assert done.returncode
    assert "there is a lab" in done.stderr
    assert (two / "lab.json").read_bytes() == before


def test_labs_stand_side_by_side_and_down_leaves_nothing(two: Path, tmp_path: Path) -> None:
    before = links()
    folder = tmp_path / "lab"
    up(folder, 2)
    there = footprint(folder)
    assert len(there["mounts"]) == 5
    assert there["commands"]
    assert there["cgroups"]
    lab("run", folder, "--", "sh", "-c", "setsid sleep 1000 > /dev/null 2>&1 &")
    inodes = namespaces(folder)
    assert len(inodes) == 3
    assert lab("down", folder).returncode == 0
    assert_nothing_is_left(folder, before, inodes)
    assert ssh(two, FIRST, "hostname").stdout == "spark-1\n"


def test_an_interrupted_up_cleans_up_after_itself(tmp_path: Path) -> None:
    before = links()
    folder = tmp_path / "lab"
    with subprocess.Popen([*LAB, "up", "--dir", str(folder), "--driver", "nspawn", "--nodes", "2"]) as process:
        while not (folder / "nodes/spark-1/upper").exists():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
    assert process.returncode
    assert_nothing_is_left(folder, before, [])


def test_down_without_a_lab_says_so(tmp_path: Path) -> None:
    done = lab("down", tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    assert "No lab is up" in done.stderr
