"""What of the nspawn driver can be seen without root."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from sparkops.errors import LabError
from sparkops.lab import debs, driver
from sparkops.lab.foreground import foreground
from sparkops.lab.nspawn import cache, host, network
from sparkops.lab.nspawn.base import mmdebstrap
from sparkops.lab.nspawn.cgroups import roots
from sparkops.lab.nspawn.files import node_files
from sparkops.lab.nspawn.mounts import mount_points


def test_a_build_that_fails_leaves_nothing_under_the_name(tmp_path: Path) -> None:
    def half(path: Path) -> None:
        (path / "half").touch()
        raise LabError("no network")

    with pytest.raises(LabError):
        cache.cached(tmp_path, "base", half)
    assert not (tmp_path / "base").exists()
    assert list(cache.cached(tmp_path, "base", lambda path: (path / "whole").touch()).iterdir()) == [
        tmp_path / "base" / "whole"
    ]


def test_two_labs_build_once(tmp_path: Path) -> None:
    built = []
    first = threading.Event()

    def build(path: Path) -> None:
        built.append(path)
        first.wait(0.2)

    threads = [threading.Thread(target=cache.cached, args=(tmp_path, "base", build)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(built) == 1


def test_keys_tell_ingredients_apart() -> None:
    assert cache.key("ab", "c") != cache.key("a", "bc")


def test_without_root_the_error_names_the_other_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(LabError, match="needs root") as error:
        driver.driver("nspawn")
    assert "--driver process" in (error.value.hint or "")


def test_a_missing_program_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LabError, match="systemd-nspawn") as error:
        host.require()
    assert "apt-get install dpkg iproute2 mmdebstrap systemd-container util-linux" in (error.value.hint or "")


def test_an_unknown_driver() -> None:
    with pytest.raises(LabError, match="'docker'"):
        driver.driver("docker")


def test_a_program_that_fails_is_quoted() -> None:
    with pytest.raises(LabError, match="exit status 3: oops"):
        host.call("sh", "-c", "echo oops >&2; exit 3")


def test_foreground_gives_the_status_as_a_shell_does() -> None:
    assert foreground(["sh", "-c", "exit 7"]) == 7
    assert foreground(["sh", "-c", "kill -9 $$"]) == 137


def test_foreground_passes_a_signal_on() -> None:
    script = (
        "import sys; from sparkops.lab.foreground import foreground; sys.exit(foreground(['sh', '-c', sys.argv[1]]))"
    )
    command = "trap 'echo got; exit 3' TERM; echo on; while :; do sleep 0.05; done"
    with subprocess.Popen([sys.executable, "-c", script, command], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "on\n"
        process.terminate()
        assert process.stdout.readline() == "got\n"
        assert process.wait(10) == 3


def test_addresses_are_distinct_and_skip_the_index() -> None:
    addresses = [network.address(number) for number in range(1000)]
    assert addresses[0] == "10.213.1.1"
    assert len({network.INDEX_ADDRESS, *addresses}) == 1001
    assert all(0 < int(address.rpartition(".")[2]) < 255 for address in addresses)


def test_the_hierarchies_of_hybrid_and_plain_machines() -> None:
    hybrid = (
        "30 29 0:25 / /sys/fs/cgroup rw shared:1 - tmpfs tmpfs rw,mode=755\n"
        "31 30 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
        "32 30 0:27 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n"
        "33 30 0:28 / /sys/fs/cgroup/unified rw shared:9 master:1 - cgroup2 cgroup2 rw\n"
    )
    assert roots(hybrid) == [Path("/sys/fs/cgroup/systemd"), Path("/sys/fs/cgroup/unified")]
    assert roots("30 29 0:25 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n") == [Path("/sys/fs/cgroup")]


def test_mounts_below_a_folder_come_inmost_first() -> None:
    text = (
        "40 1 8:1 / / rw - ext4 /dev/sda rw\n"
        "41 40 0:4 net:[1] /tmp/a\\040lab/nodes/net rw - nsfs nsfs rw\n"
        "42 40 0:9 / /tmp/a\\040lab/nodes/x rw - overlay o rw\n"
        "43 42 0:9 / /tmp/a\\040lab/nodes/x/y rw - tmpfs t rw\n"
        "44 40 0:9 / /tmp/a\\040laboratory/x rw - tmpfs t rw\n"
    )
    below = [Path("/tmp/a lab/nodes") / name for name in ("x/y", "x", "net")]
    assert mount_points(text, Path("/tmp/a lab")) == below


@pytest.mark.parametrize(("asks", "rule"), [(False, "NOPASSWD: ALL"), (True, "ALL")])
def test_the_files_of_a_node(asks: bool, rule: str) -> None:
    addresses = {"spark-1": "10.0.0.1", "spark-2": "10.0.0.2"}
    files = node_files(
        "spark-1", addresses, "ssh-ed25519 AAAA", ("private", "public"), asks=asks, environment={}, nvidia_smi="#!"
    )
    assert files["etc/sudoers.d/spark"].text == f"spark ALL=(ALL:ALL) {rule}\n"
    assert files["etc/sudoers.d/spark"].mode == 0o440
    assert files["etc/ssh/ssh_host_ed25519_key"].mode == 0o600
    assert "10.0.0.2 spark-2\n" in files["etc/hosts"].text
    assert "10.0.0.1" not in files["etc/hosts"].text
    assert files["home/spark/.ssh/authorized_keys"].spark
    assert not any("systemd" in name for name in files)


@pytest.mark.lab
def test_the_root_is_an_argument_of_its_own() -> None:
    root = Path("/cache/with blank; and more")
    assert str(root) in mmdebstrap(root)


@pytest.mark.lab
def test_a_repository_of_stand_ins(tmp_path: Path) -> None:
    debs.build_standins(tmp_path)
    debs.write_index(tmp_path)
    stanzas = (tmp_path / "Packages").read_text().strip().split("\n\n")
    assert len(stanzas) == len(debs.STANDINS)
    for stanza in stanzas:
        fields = dict(line.split(": ", 1) for line in stanza.splitlines() if not line.startswith(" "))
        assert fields["Package"] in debs.STANDINS
        assert "stand-in" in fields["Description"]
        assert (tmp_path / fields["Filename"]).stat().st_size == int(fields["Size"])
    assert f"{(tmp_path / 'Packages').stat().st_size} Packages" in (tmp_path / "Release").read_text()
