from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from sparkops.node import distribution, facts, hardware, network
from sparkops.node.api import Failure


def reader(files: dict[str, str]) -> Callable[[str], str]:
    return lambda path: files.get(path, "")


def test_the_facts_of_this_machine(apply: Any, node: Any) -> None:
    found = apply("setup").result["ansible_facts"]
    assert found["ansible_architecture"] == os.uname().machine
    assert found["ansible_hostname"] == os.uname().nodename.split(".")[0]
    assert found["ansible_user_uid"] == os.geteuid()
    assert found["ansible_env"]["HOME"] == node.home
    assert found["ansible_memtotal_mb"] * 2**20 == pytest.approx(os.sysconf("SC_PHYS_PAGES") * 4096, rel=0.01)
    assert found["ansible_processor_nproc"] == len(os.sched_getaffinity(0))
    assert "lo" in found["ansible_interfaces"]
    assert found["ansible_lo"]["ipv4"] == {
        "address": "127.0.0.1",
        "broadcast": "",
        "netmask": "255.0.0.0",
        "network": "127.0.0.0",
        "prefix": "8",
    }
    assert all(name.startswith("ansible_") or name in ("gather_subset", "module_setup") for name in found)


def test_gathering_costs_less_than_15_ms_of_cpu() -> None:
    code = """if True:
        import json, os, time
        from sparkops.node.runtime import LocalNode
        from sparkops.node.modules import setup
        node = LocalNode(None, "/nonexistent", False, {})
        started = time.process_time()
        setup.apply(setup.Args(), node)
        print(time.process_time() - started)
    """
    best = min(float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(5))
    assert best < 0.015


@pytest.mark.parametrize(
    ("subset", "groups"),
    [
        (["all"], {"min", "hardware", "network"}),
        ([], {"min", "hardware", "network"}),
        (["!all"], {"min"}),
        (["!all", "!min"], set()),
        (["!all", "network"], {"min", "network"}),
        (["hardware"], {"min", "hardware"}),
        (["!hardware"], {"min", "network"}),
        (["!all", "!min", "cpu"], {"hardware"}),
        (["virtual"], {"min"}),
    ],
)
def test_subsets(subset: list[str], groups: set[str]) -> None:
    assert facts.wanted_groups(subset) == groups


def test_an_unknown_subset_is_named() -> None:
    with pytest.raises(Failure, match="'netwrk' is no subset"):
        facts.wanted_groups(["!netwrk"])


def test_filter(apply: Any) -> None:
    found = apply("setup", filter=["ansible_mem*_mb"]).result["ansible_facts"]
    assert set(found) == {"ansible_memtotal_mb", "ansible_memfree_mb", "ansible_memory_mb"}
    with pytest.raises(Failure, match="no fact's name"):
        apply("setup", filter=["nothing"])


def test_local_facts(tmp_path: Any, apply: Any) -> None:
    (tmp_path / "a.fact").write_text('{"x": 1}')
    (tmp_path / "b.fact").write_text("[s]\nk = v%s\n")
    (tmp_path / "c.fact").write_text('#!/bin/sh\necho "[1, 2]"\n')
    (tmp_path / "c.fact").chmod(0o755)
    (tmp_path / "d.fact").write_text("what")
    (tmp_path / "e.txt").write_text("{}")
    found = apply("setup", fact_path=str(tmp_path)).result["ansible_facts"]["ansible_local"]
    assert found.pop("d").startswith("error loading")
    assert found == {"a": {"x": 1}, "b": {"s": {"k": "v%s"}}, "c": [1, 2]}


UBUNTU = 'NAME="Ubuntu"\nVERSION_ID="24.04"\nVERSION_CODENAME=noble\nID=ubuntu\nID_LIKE=debian\n'
ROCKY = 'NAME="Rocky Linux"\nVERSION="9.4 (Blue Onyx)"\nID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.4"\n'


@pytest.mark.parametrize(
    ("files", "wanted"),
    [
        ({"/etc/os-release": UBUNTU}, ("Ubuntu", "24.04", "24", "noble", "Debian")),
        ({"/usr/lib/os-release": ROCKY}, ("Rocky", "9.4", "9", "Blue Onyx", "RedHat")),
        (
            {
                "/etc/os-release": 'ID=debian\nVERSION_ID="12"\nVERSION_CODENAME=bookworm\n',
                "/etc/debian_version": "12.11\n",
            },
            ("Debian", "12.11", "12", "bookworm", "Debian"),
        ),
        ({"/etc/os-release": "ID=mine\nNAME=Mine\nID_LIKE=ubuntu\n"}, ("Mine", "NA", "NA", "NA", "Debian")),
        ({}, ("OtherLinux", "NA", "NA", "NA", "OtherLinux")),
    ],
)
def test_distributions(files: dict[str, str], wanted: tuple[str, ...]) -> None:
    found = distribution.facts(reader(files))
    names = ("distribution", "distribution_version", "distribution_major_version", "distribution_release", "os_family")
    assert tuple(found[name] for name in names) == wanted


def test_processors() -> None:
    arm = "".join(f"processor\t: {n}\nBogoMIPS\t: 2000.00\nCPU part\t: 0xd85\n\n" for n in range(20))
    found = hardware.processors(arm)
    assert [found[f"processor_{name}"] for name in ("count", "cores", "threads_per_core", "vcpus")] == [20, 1, 1, 20]
    intel = "".join(
        f"processor\t: {n}\nvendor_id\t: V\nmodel name\t: M\nphysical id\t: {n // 4}\ncore id\t: {n % 2}\n"
        for n in range(8)
    )
    found = hardware.processors(intel)
    assert [found[f"processor_{name}"] for name in ("count", "cores", "threads_per_core", "vcpus")] == [2, 2, 2, 8]
    assert found["processor"][:3] == ["0", "V", "M"]
    assert hardware.processors("")["processor_vcpus"] == 0


def test_memory() -> None:
    found = hardware.memory(
        "MemTotal: 2097152 kB\nMemFree: 1048576 kB\nBuffers: 1024 kB\nCached: 2048 kB\nHugePages_Total: 0\n"
    )
    assert (found["memtotal_mb"], found["memfree_mb"]) == (2048, 1024)
    assert found["memory_mb"]["nocache"] == {"free": 1027, "used": 1021}


def test_full_name() -> None:
    hosts = "127.0.0.1 localhost\n127.0.1.1 spark-1.lan spark-1 # me\n"
    assert facts.full_name("spark-1", hosts) == "spark-1.lan"
    assert facts.full_name("other", hosts) == "other"
    assert facts.full_name("a.b", hosts) == "a.b"


ROUTES = """Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
wlan0\t00000000\t0101A8C0\t0003\t0\t0\t600\t00000000\t0\t0\t0
enP7s7\t00000000\t0102000A\t0003\t0\t0\t100\t00000000\t0\t0\t0
enP7s7\t0002000A\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0
"""


def test_the_default_route_is_the_one_with_the_lowest_metric() -> None:
    assert network.route4(ROUTES) == ("enP7s7", "10.0.2.1")
    assert network.route4("") == ("", "")
    assert network.default(("", ""), {}, "ipv4") == {}


def test_netlink_answers() -> None:
    import _socket

    def attribute(kind: int, data: bytes) -> bytes:
        return struct.pack("=HH", 4 + len(data), kind) + data + b"\0" * (-len(data) % 4)

    def message(kind: int, body: bytes) -> bytes:
        return struct.pack("=IHHII", 16 + len(body), kind, 2, 1, 0) + body

    local, broadcast = socket.inet_aton("192.168.100.7"), socket.inet_aton("192.168.100.255")
    v4 = struct.pack("=BBBBI", socket.AF_INET, 24, 0, 0, 3) + attribute(1, local) + attribute(2, local)
    v4 += attribute(3, b"enp1s0f0np0\0") + attribute(4, broadcast)
    v6 = struct.pack("=BBBBI", socket.AF_INET6, 64, 0, 253, 3)
    v6 += attribute(1, socket.inet_pton(socket.AF_INET6, "fe80::1"))
    found = network.parse(message(20, v4) + message(20, v6) + message(3, b"\0" * 4), _socket)
    assert [(one.index, one.address, one.prefix, one.scope, one.broadcast) for one in found] == [
        (3, "192.168.100.7", 24, "global", "192.168.100.255"),
        (3, "fe80::1", 64, "link", ""),
    ]
    assert network.ipv4(found[0])["network"] == "192.168.100.0"
