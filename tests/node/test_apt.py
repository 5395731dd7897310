from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from sparkops.node import apt, dnf
from sparkops.node.api import Failure

LISTING = (
    "ii \tninja-build\tamd64\t1.11.1-1\tninja (= 1.11)\n"
    "ii \tlibc6\tamd64\t2.36\t\n"
    "ii \tlibc6\ti386\t2.36\t\n"
    "hi \theld\tall\t1:2.0~rc1-3\t\n"
    "rc \told\tamd64\t1\t\n"
    "iU \thalf\tamd64\t1\t\n"
    "ii \texim4\tall\t4\tdefault-mta, mail-transport-agent\n"
)


@pytest.mark.parametrize(
    ("name", "there"),
    [
        ("ninja-build", True),
        ("ninja-build=1.11.1-1", True),
        ("ninja-build=1.12", False),
        ("ninja", True),
        ("ninja=1.11", False),
        ("libc6:i386", True),
        ("libc6:arm64", False),
        ("held", True),
        ("held=1:2.0~rc1-3", True),
        ("old", False),
        ("half", False),
        ("mail-transport-agent", True),
        ("g++", False),
    ],
)
def test_what_is_installed(name: str, there: bool) -> None:
    assert apt.satisfied(apt.Package(name), apt.parse(LISTING)) is there


@pytest.mark.parametrize(
    "name",
    ["", "-y", "--reinstall", "foo-", "Foo", "a b", "a;b", "a\n", "a*", "a=", "a=1 2", "a:", "a:b=", "./x.deb", "a/b"],
)
def test_hostile_names(name: str) -> None:
    with pytest.raises(Failure, match="no name of a package"):
        apt.Package(name)
    if name not in ("foo-", "Foo", "a:"):
        with pytest.raises(Failure, match="no name of a package"):
            dnf.check_name(name)


@pytest.mark.parametrize(
    ("verb", "options", "words"),
    [
        ("install", {}, ["install", "--", "jq"]),
        ("install", {"install_recommends": False}, ["-o", "APT::Install-Recommends=no", "install", "--", "jq"]),
        ("purge", {"autoremove": True}, ["--auto-remove", "purge", "--", "jq"]),
    ],
)
def test_commands(verb: str, options: dict[str, Any], words: list[str]) -> None:
    argv = apt.get_argv(verb, ["jq"], apt.Options("present", **options))
    assert argv[:3] == ["apt-get", "-y", "-q"]
    assert argv[-len(words) :] == words
    assert "DPkg::Lock::Timeout=60" in argv


def test_what_is_left_to_remove() -> None:
    installed = apt.parse(LISTING)
    assert not apt.left(apt.Package("old"), installed, purge=False)
    assert apt.left(apt.Package("old"), installed, purge=True)
    assert apt.left(apt.Package("libc6:i386"), installed, purge=False)
    assert not apt.left(apt.Package("ninja"), installed, purge=False), "a virtual name removes nothing"


def test_simulation() -> None:
    assert apt.instances("Inst jq (1.6 x [amd64])\nInst libjq1 [1.5] (1.6)\nConf jq\n") == ["jq", "libjq1"]


def test_progress_counts_what_dpkg_set_up(tmp_path: Any, node: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "dpkg.log"
    log.write_text("2026-01-01 00:00:00 status installed before:amd64 1\n")
    monkeypatch.setattr(apt, "DPKG_LOG", str(log))
    watch = apt.watcher(3)
    with log.open("a") as file:
        file.write("x status half-installed jq:amd64 1\nx status installed jq:amd64 1\n")
    watch(node)
    assert node.moves == [(1, 3, "packages", "")]


def test_rpm_systems(node: Any, apply: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    node.program("rpm", '#!/bin/sh\n[ "$3" = jq ]\n')
    node.program("dnf", '#!/bin/sh\necho "$@" > "$HOME/dnf"\n')
    which = node.which
    monkeypatch.setattr(node, "which", lambda name: None if name == "apt-get" else which(name))
    assert apply("package", name=["jq"]).state == "ok"
    assert apply("package", check=True, name=["jq", "ninja-build"]).result["packages"] == ["ninja-build"]
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(Failure, match="become: true"):
        apply("package", name=["ninja-build"])
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    done = apply("package", name=["jq", "ninja-build"])
    assert (done.state, done.msg) == ("changed", "install ninja-build")
    assert Path(node.home, "dnf").read_text() == "-y -q install ninja-build\n"
    node.program("dnf", "#!/bin/sh\necho 'Error: Unable to find a match' >&2; exit 1\n")
    with pytest.raises(Failure, match="Unable to find a match"):
        apply("package", name=["ninja-build"])


def test_neither_apt_nor_dnf(node: Any, apply: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node, "which", lambda _: None)
    with pytest.raises(Failure, match="neither apt-get nor dnf; install by hand: jq"):
        apply("package", name=["jq"])
    assert apply("package", name=[]).state == "ok"
