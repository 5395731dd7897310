"""known_hosts files: what is kept, what is replaced."""

from __future__ import annotations

from pathlib import Path

import paramiko
import pytest

from sparkops.errors import InputError
from sparkops.transport import hostkeys
from sparkops.transport.address import Address
from sparkops.transport.connection import connection, split_hop
from sparkops.transport.fingerprint import fingerprint


@pytest.fixture
def key() -> paramiko.PKey:
    return paramiko.ECDSAKey.generate()


def _address(tmp_path: Path, host: str = "10.0.0.1", port: int | None = None) -> Address:
    return Address("spark-1", host, port, known_hosts=(str(tmp_path / "known_hosts"),))


def test_a_recorded_key_is_found_again(tmp_path: Path, key: paramiko.PKey) -> None:
    for address in (_address(tmp_path), _address(tmp_path, port=2222)):
        hostkeys.record(address, key)
        assert hostkeys.recorded(address) == [key]


def test_recording_replaces_that_host_alone(tmp_path: Path, key: paramiko.PKey) -> None:
    file = tmp_path / "known_hosts"
    other = paramiko.ECDSAKey.generate().get_base64()
    hashed = paramiko.HostKeys.hash_host("10.0.0.1")
    kept = [
        "# a comment",
        f"10.0.0.2 ecdsa-sha2-nistp256 {other}",
        "@cert-authority *.lan ssh-ed25519 AAAA",
        f"[10.0.0.1]:2222 ecdsa-sha2-nistp256 {other}",
    ]
    old = [f"{hashed} ecdsa-sha2-nistp256 {other}", f"10.0.0.1,alias ecdsa-sha2-nistp256 {other}"]
    file.write_text("\n".join([*kept, *old]) + "\n")
    hostkeys.record(_address(tmp_path), key)
    lines = file.read_text().splitlines()
    assert lines[:4] == kept
    assert lines[4:] == [
        f"alias ecdsa-sha2-nistp256 {other}",
        f"10.0.0.1 {key.get_name()} {key.get_base64()}",
    ]
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_fingerprint_reads_as_ssh_keygen_prints_it() -> None:
    text = "AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"
    key = paramiko.PKey.from_type_string("ssh-ed25519", __import__("base64").b64decode(text))
    assert fingerprint(key) == "SHA256:+DiY3wvvV6TuJJhbpZisF/zLDA0zPMSvHdkr4UvCOqU"


def test_ssh_config_says_where_a_host_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: paramiko.PKey) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh/config").write_text("Host spark-1\n  HostName 10.9.8.7\n  Port 2222\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    address = _address(tmp_path, host="spark-1")
    assert hostkeys.entry_name(address) == "[10.9.8.7]:2222"
    hostkeys.record(address, key)
    assert hostkeys.recorded(address) == [key]


@pytest.mark.parametrize(
    ("hop", "parts"),
    [
        ("h", (None, "h", None)),
        ("me@h:23", ("me", "h", 23)),
        ("[::1]:22", (None, "::1", 22)),
        ("me@[::1]", ("me", "::1", None)),
    ],
)
def test_jump_hosts(hop: str, parts: tuple[str | None, str, int | None]) -> None:
    assert split_hop(hop, "spark-1") == parts


def test_jump_hosts_are_a_chain(tmp_path: Path) -> None:
    found = connection(Address("spark-1", "10.0.0.1", jump="me@a:23,b"))
    assert (found.gateway.host, found.gateway.gateway.host, found.gateway.gateway.port) == ("b", "a", 23)
    with pytest.raises(InputError, match="is no jump host"):
        connection(Address("spark-1", "10.0.0.1", jump="a:x"))
