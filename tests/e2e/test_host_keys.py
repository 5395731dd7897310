"""Host keys: unknown ones and changed ones are refused, with the cure, before anybody logs in."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from sparkops.lab.lab import new_key
from tests.e2e.nodes import Nodes

pytestmark = pytest.mark.lab


@pytest.fixture
def known(tmp_path: Path) -> Path:
    """A known_hosts of our own, empty."""
    return tmp_path / "known_hosts"


@pytest.fixture
def inventory(nodes: Nodes, tmp_path: Path, known: Path) -> Path:
    """spark-1, checked against our own known_hosts."""
    document = yaml.safe_load(nodes.inventory.read_text())
    del document["sparks"]["hosts"]["spark-2"]
    document["sparks"]["vars"]["ansible_ssh_common_args"] = f"-o UserKnownHostsFile={known}"
    (tmp_path / "inventory.yml").write_text(yaml.safe_dump(document))
    return tmp_path / "inventory.yml"


def logins(nodes: Nodes) -> int:
    return nodes.on("spark-1", "journalctl", "-u", "ssh", "--no-pager", "-o", "cat").count("Accepted publickey")


def fingerprint(nodes: Nodes) -> str:
    return nodes.on("spark-1", "ssh-keygen", "-lf", "/etc/ssh/ssh_host_ed25519_key.pub").split()[1]


def test_an_unknown_key_is_refused_until_it_is_trusted(nodes: Nodes, inventory: Path, play: Path, known: Path) -> None:
    before = logins(nodes)
    run = nodes.sparkops("play", str(play), inventory=inventory, rc=4)
    (end,) = [one for one in run.events if one["event"] == "host_end"]
    assert end["state"] == "unreachable"
    assert fingerprint(nodes) in end["msg"]
    assert "sparkops trust spark-1" in end["hint"]
    plain = nodes.plain("play", str(play), inventory=inventory)
    assert plain.rc == 4
    assert "sparkops trust spark-1" in plain.out
    assert not known.exists()

    # Without a yes nothing is recorded.
    refused = nodes.plain("trust", "spark-1", stdin="n\n", inventory=inventory)
    assert (refused.rc, known.exists()) == (4, False)
    trusted = nodes.plain("trust", "spark-1", "--yes", inventory=inventory)
    assert trusted.rc == 0
    assert fingerprint(nodes) in trusted.out
    assert logins(nodes) == before
    nodes.sparkops("play", str(play), inventory=inventory)
    assert logins(nodes) == before + 1


def test_a_changed_key_is_refused_until_it_is_replaced(nodes: Nodes, inventory: Path, play: Path, known: Path) -> None:
    before = logins(nodes)
    host = yaml.safe_load(inventory.read_text())["sparks"]["hosts"]["spark-1"]["ansible_host"]
    other = f"10.9.9.9 {new_key('')[1].strip()}\n"
    known.write_text(other + f"{host} {new_key('')[1].strip()}\n")
    was = known.read_text()
    run = nodes.sparkops("play", str(play), inventory=inventory, rc=4)
    (end,) = [one for one in run.events if one["event"] == "host_end"]
    assert "CHANGED" in end["msg"]
    assert fingerprint(nodes) in end["msg"]
    assert "sparkops trust --replace spark-1" in end["hint"]

    refused = nodes.plain("trust", "--yes", "spark-1", inventory=inventory)
    assert refused.rc == 4
    assert "sparkops trust --replace spark-1" in refused.err
    assert known.read_text() == was
    assert nodes.plain("trust", "--replace", "--yes", "spark-1", inventory=inventory).rc == 0
    assert logins(nodes) == before
    nodes.sparkops("play", str(play), inventory=inventory)
    assert known.read_text().startswith(other)
    assert len(known.read_text().splitlines()) == 2
