"""Modules on a node that boots Debian with systemd."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.node.onnode import OnNode, nspawn_lab

pytestmark = pytest.mark.lab

SERVES = """[Unit]
Description=100%% $HOME "quoted" käse
[Service]
Type=exec
ExecStart=/usr/bin/sleep {seconds}
Restart=always
[Install]
WantedBy={target}
"""
CRASHES = "[Service]\nType=exec\nExecStart=/bin/sh -c 'echo boom-at-start; exit 3'\nRestart=always\nRestartSec=0.2\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with nspawn_lab(tmp_path_factory.mktemp("on") / "lab") as lab:
        yield lab


@pytest.fixture
def root(folder: Path) -> OnNode:
    return OnNode(folder, "root")


@pytest.fixture
def spark(folder: Path) -> OnNode:
    return OnNode(folder, "spark")


@pytest.mark.parametrize(
    ("user", "scope", "target"), [("root", "system", "multi-user.target"), ("spark", "user", "default.target")]
)
def test_a_unit_s_life(folder: Path, user: str, scope: str, target: str) -> None:
    node = OnNode(folder, user)
    node.sh("rm -f link; ln -s 1 link")
    args: dict[str, Any] = {"name": "sleeper", "scope": scope, "enabled": True, "state": "started", "watch": ["~/link"]}
    args.update(kinds={"watch": "path"}, content=SERVES.format(seconds=1000, target=target))
    assert node.task("systemd_unit", check=True, **args)["state"] == "changed"
    first = node.task("systemd_unit", **args)
    assert first["state"] == "changed", first
    assert first["result"]["enabled"] == "enabled"
    assert ("lingering enabled" in first["result"]["actions"]) == (scope == "user")
    pid = first["result"]["pid"]
    for check in (True, False):
        again = node.task("systemd_unit", check=check, **args)
        assert (again["state"], again["result"]["pid"]) == ("ok", pid), again
    node.sh("rm link; ln -s 2 link")
    assert node.task("systemd_unit", check=True, **args)["state"] == "changed"
    moved = node.task("systemd_unit", **args)
    assert (moved["state"], moved["result"]["pid"] != pid) == ("changed", True), moved
    assert node.task("systemd_unit", **args)["state"] == "ok"
    args["content"] = SERVES.format(seconds=2000, target=target)
    other = node.task("systemd_unit", **args)
    assert "restarted (its unit changed)" in other["result"]["actions"], other
    assert node.task("systemd_unit", **args)["state"] == "ok"
    gone: dict[str, Any] = {"name": "sleeper", "scope": scope, "state": "absent"}
    assert node.task("systemd_unit", **gone)["state"] == "changed"
    assert node.task("systemd_unit", **gone)["state"] == "ok"


@pytest.mark.parametrize("user", ["root", "spark"])
def test_a_crash_at_start_shows_the_journal(folder: Path, user: str) -> None:
    scope = "system" if user == "root" else "user"
    node = OnNode(folder, user)
    if scope == "user":
        node.task(
            "systemd_unit",
            name="linger",
            content="[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=default.target\n",
            scope=scope,
            enabled=True,
        )
    failed = node.task("systemd_unit", name="crasher", content=CRASHES, scope=scope, state="started")
    assert failed["state"] == "failed"
    assert any("boom-at-start" in line for line in failed["result"]["journal"]), failed
    node.task("systemd_unit", name="crasher", scope=scope, state="absent")


def test_a_unit_that_systemd_refuses(root: OnNode) -> None:
    failed = root.task("systemd_unit", name="bad", content="[Service]\nType=exec\n", state="started")
    assert failed["state"] == "failed"
    assert "bad" in failed["msg"]
    assert root.task("systemd_unit", name="bad", state="absent")["state"] == "changed"


def test_packages(root: OnNode, spark: OnNode) -> None:
    args: dict[str, Any] = {"name": ["ninja-build", "gcc", "sudo"]}
    assert spark.task("package", check=True, **args)["state"] == "changed"
    assert "become: true" in spark.task("package", **args)["msg"]
    done = root.task("package", **args)
    assert (done["state"], done["result"]["packages"]) == ("changed", ["ninja-build", "gcc"]), done
    assert root.sh("dpkg-query -W -f '${db:Status-Abbrev}' ninja-build").strip() == "ii"
    for module in ("package", "apt"):
        for check in (True, False):
            assert root.task(module, check=check, **args)["state"] == "ok"
    version = root.sh("dpkg-query -W -f '${Version}' ninja-build")
    assert root.task("apt", name=[f"ninja-build={version}"])["state"] == "ok"
    assert root.task("apt", name=["c-compiler-that-is-not"])["state"] == "failed"
    assert "in none of this node's package sources" in root.task("apt", name=["no-such-package"])["msg"]
    assert root.task("apt", name=["ninja-build"], state="latest")["state"] == "ok"
    assert root.task("apt", name=["ninja-build"], state="absent", check=True)["state"] == "changed"
    assert root.task("apt", name=["ninja-build"], state="absent")["state"] == "changed"
    assert root.task("apt", name=["ninja-build"], state="absent")["state"] == "ok"


def test_an_empty_index_is_filled_once(root: OnNode) -> None:
    root.sh("rm -rf /var/lib/apt/lists/*")
    done = root.task("package", name=["jq"])
    assert (done["state"], done["result"]["cache_updated"]) == ("changed", True), done


def test_an_index_that_is_young_enough_is_left(root: OnNode) -> None:
    assert root.task("apt", update_cache=True, cache_valid_time=3600)["state"] == "ok"
    assert root.task("apt", update_cache=True)["state"] == "changed"


def test_the_cache_of_another_s_file_and_of_the_whole_node(root: OnNode, spark: OnNode) -> None:
    spark.sh("mkdir -p tree; head -c 32M /dev/urandom > tree/big; sync tree/big; cat tree/big > /dev/null")
    seen = spark.task("page_cache", check=True, path="~/tree", kinds={"path": "path"})
    assert (seen["state"], seen["result"]["resident"]) == ("changed", 32 << 20), seen
    done = spark.task("page_cache", path="~/tree", kinds={"path": "path"})
    assert (done["state"], done["result"]["resident_after"]) == ("changed", 0), done
    assert root.sh("fincore -b -n -o RES /home/spark/tree/big").strip() == "0"
    assert spark.task("page_cache", path="~/tree", kinds={"path": "path"})["state"] == "ok"
    assert "become: true" in spark.task("page_cache", scope="all")["msg"]
    # A node of the lab shows a Spark's memory, which does not move.
    root.sh("umount /proc/meminfo")
    spark.sh("head -c 300M /dev/zero > tree/big; sync tree/big")
    assert root.task("page_cache", scope="all", check=True)["state"] == "changed"
    assert root.task("page_cache", scope="all")["state"] == "changed"
    assert root.task("page_cache", scope="all")["state"] == "ok"


def test_facts_and_the_driver(root: OnNode) -> None:
    facts = root.task("setup")["result"]["ansible_facts"]
    assert facts["ansible_service_mgr"] == "systemd"
    assert facts["ansible_pkg_mgr"] == "apt"
    assert facts["ansible_user_id"] == "root"
    assert len(facts["ansible_all_ipv4_addresses"]) == 1
    assert root.task("nvidia_driver")["state"] == "ok"
    root.sh("echo 570.86 > /etc/sparkops-lab/driver")
    assert "driver 570.86 is older than 580" in root.task("nvidia_driver")["msg"]
