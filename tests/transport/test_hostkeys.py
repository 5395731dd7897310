"""known_hosts files: what is kept, what is replaced."""

from __future__ import annotations

from pathlib import Path

import paramiko
import pytest

from sparkops.transport import hostkeys
from sparkops.transport.address import Address


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
    assert hostkeys.fingerprint(key) == "SHA256:+DiY3wvvV6TuJJhbpZisF/zLDA0zPMSvHdkr4UvCOqU"
