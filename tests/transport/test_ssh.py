"""Logging in to a plain host: ssh_config, keys and host keys count as they do for ssh; what is read once is read again
when it has changed.
"""

from __future__ import annotations

import errno
import getpass
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import paramiko
import pytest

from sparkops.errors import ConnectionLost, HostKeyError, HostUnreachable
from sparkops.lab.process.sshd import Login, Sshd
from sparkops.node import bundle
from sparkops.transport import dial, direct, known
from sparkops.transport.address import Address
from sparkops.transport.session import Session
from sparkops.transport.ssh import connect
from tests.lab.copies import free_port

NAME = "spark-1"


def spawn(command: bytes) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    return subprocess.Popen(["sh", "-c", command], stdin=pipe, stdout=pipe, stderr=pipe)


class Place:
    """An SSH server of this process, its one client key, and a home of our own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.host_key = paramiko.ECDSAKey.generate()
        self.client_key = paramiko.ECDSAKey.generate()
        self.ssh = home / ".ssh"
        self.ssh.mkdir(mode=0o700)
        self.key = self.write_key("id_test")
        self.port = free_port()
        self.user = "somebody"
        self.server = Sshd(
            "127.0.0.1", self.port, self.host_key, lambda: Login(self.user, self.client_key, spawn, lambda: None)
        )
        self.server.listen()
        self.record(f"[127.0.0.1]:{self.port}")

    def write_key(self, name: str, password: str | None = None, key: paramiko.PKey | None = None) -> Path:
        path = self.ssh / name
        path.touch(mode=0o600)
        (key or self.client_key).write_private_key_file(str(path), password=password)
        return path

    def record(self, names: str, key: paramiko.PKey | None = None) -> None:
        found = key or self.host_key
        (self.ssh / "known_hosts").write_text(f"# ours\n{names} {found.get_name()} {found.get_base64()}\n")

    def address(self, **given: object) -> Address:
        values: dict[str, object] = {"host": "127.0.0.1", "port": self.port, "user": self.user, "timeout": 5.0}
        values.update(key_file=str(self.key), python=sys.executable)
        return Address(NAME, **{**values, **given})  # type: ignore[arg-type]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    found = Place(tmp_path)
    yield found
    found.server.cut()
    found.server.socket.close()


def greets(address: Address, plain: socket.socket | None = None) -> bool:
    """Whether an executor answers there."""
    session = Session(connect(address, plain), bundle.start(["command"]), address.name)
    try:
        session.send({"op": "open", "state_dir": "~/state", "check": True})
        return bool(session.receive()["ev"] == "hello")
    finally:
        session.close()


def test_a_read_on_a_connection_that_is_gone_says_so(place: Place) -> None:
    channel = connect(place.address())
    session = Session(channel, bundle.start(["command"]), NAME)
    try:
        session.send({"op": "open", "state_dir": "~/state", "check": True})
        session.receive()
        assert isinstance(channel._socket, socket.socket)
        channel._socket.shutdown(socket.SHUT_RDWR)
        with pytest.raises(ConnectionLost, match="the connection ended early: the other side is gone"):
            while True:
                session.receive()
    finally:
        session.close()


def test_a_write_on_a_connection_that_is_gone(place: Place) -> None:
    channel = connect(place.address())
    try:
        assert isinstance(channel._socket, socket.socket)
        channel._socket.shutdown(socket.SHUT_RDWR)
        with pytest.raises(ConnectionLost, match=r"broke: (the other side is gone|[A-Z])"):
            for _ in range(1000):
                channel.write(b"x" * 100_000)
    finally:
        channel.close()


def test_a_connection_that_broke_says_why(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the node has not acknowledged in time comes as an error of the socket."""
    channel = connect(place.address())
    session = Session(channel, bundle.start(["command"]), NAME)

    def broken() -> None:
        raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))

    try:
        packets: Any = channel._transport
        monkeypatch.setattr(packets.packetizer, "read_message", broken)
        session.send({"op": "open", "state_dir": "~/state", "check": True})
        with pytest.raises(ConnectionLost, match=r"(ended early|broke): Connection timed out"):
            while True:
                session.receive()
    finally:
        session.close()


def test_a_key_of_the_inventory(place: Place) -> None:
    assert greets(place.address())


@pytest.mark.parametrize("words", ["User somebody\n  IdentityFile ~/.ssh/id_test", "User somebody"])
def test_ssh_config_names_the_place_the_user_and_the_key(place: Place, words: str) -> None:
    # Without a key named, the usual names are tried.
    place.write_key("id_ecdsa")
    (place.ssh / "config").write_text(f"Host spark-1\n  HostName 127.0.0.1\n  Port {place.port}\n  {words}\n")
    assert greets(place.address(host="spark-1", port=None, user=None, key_file=None))


def test_ssh_config_is_read_again_when_it_has_changed(place: Place) -> None:
    config = place.ssh / "config"
    config.write_text("Host a\n  Port 1\n")
    assert _login("a").port == 1
    config.write_text("Host a\n  Port 2\n  ConnectTimeout 3\n")
    assert (_login("a").port, _login("a").timeout, _login("b").port) == (2, 3.0, 22)
    assert _login("b").user == getpass.getuser()


def _login(host: str) -> direct.Login:
    found = direct.resolve(Address(NAME, host))
    assert found is not None
    return found


@pytest.mark.parametrize("words", ["ProxyJump a", "ProxyCommand nc a 22"])
def test_what_is_behind_something_is_fabric_s(place: Place, words: str) -> None:
    (place.ssh / "config").write_text(f"Host spark-1\n  {words}\n")
    assert direct.resolve(Address(NAME, "spark-1")) is None
    assert direct.resolve(Address(NAME, "other")) is not None
    assert direct.resolve(Address(NAME, "other", jump="a")) is None


def test_another_key_is_not_let_in(place: Place) -> None:
    other = place.write_key("id_other", key=paramiko.ECDSAKey.generate())
    with pytest.raises(HostUnreachable, match="may not log in"):
        connect(place.address(key_file=str(other)))


def test_a_key_with_a_passphrase_says_so(place: Place) -> None:
    locked = place.write_key("id_locked", password="secret")
    with pytest.raises(HostUnreachable, match="id_locked has a passphrase; give it to ssh-agent"):
        connect(place.address(key_file=str(locked)))


def test_a_key_file_that_is_not_there_is_named(place: Place) -> None:
    with pytest.raises(HostUnreachable, match="No such file"):
        connect(place.address(key_file="~/.ssh/nowhere"))


def test_a_key_that_has_changed_is_read_again(place: Place) -> None:
    assert greets(place.address())
    place.write_key("id_test", key=paramiko.ECDSAKey.generate())
    with pytest.raises(HostUnreachable, match="may not log in"):
        connect(place.address())


def test_host_keys(place: Place) -> None:
    name = f"[127.0.0.1]:{place.port}"
    for names in (f"other,{name}", paramiko.HostKeys.hash_host(name)):
        place.record(names)
        assert greets(place.address())
    place.record("other")
    with pytest.raises(HostKeyError, match="is not recorded"):
        connect(place.address())
    place.record(name, paramiko.ECDSAKey.generate())
    with pytest.raises(HostKeyError, match="CHANGED"):
        connect(place.address())
    (place.ssh / "known_hosts").write_text(f"{name} ssh-rsa AAA\n")
    with pytest.raises(HostKeyError, match="a broken line"):
        connect(place.address())


def test_of_two_keys_of_a_kind_the_first_counts(place: Place) -> None:
    name = f"[127.0.0.1]:{place.port}"
    place.record(name)
    first = (place.ssh / "known_hosts").read_text()
    place.record(name, paramiko.ECDSAKey.generate())
    second = (place.ssh / "known_hosts").read_text()
    (place.ssh / "known_hosts").write_text(first + second)
    assert greets(place.address())
    (place.ssh / "known_hosts").write_text(second + first)
    with pytest.raises(HostKeyError, match="CHANGED"):
        connect(place.address())


def test_several_files_of_host_keys(place: Place, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    files = (str(tmp_path / "nowhere"), str(tmp_path / "empty"), "~/.ssh/known_hosts")
    assert greets(place.address(known_hosts=files))
    assert known.keys(files, "unknown", NAME) == []
    with pytest.raises(HostKeyError, match="is not recorded"):
        connect(place.address(known_hosts=files[:2]))


def test_nobody_listens(place: Place) -> None:
    place.server.cut()
    with pytest.raises(HostUnreachable, match="Connection refused"):
        connect(place.address())


def test_a_connection_that_was_begun_is_used(place: Place) -> None:
    plain = socket.create_connection(("127.0.0.1", place.port))
    assert greets(place.address(), plain)
    assert len(place.server.connections) == 1


def test_a_connection_to_somewhere_else_is_not(place: Place) -> None:
    (place.ssh / "config").write_text(f"Host spark-1\n  HostName 127.0.0.1\n  Port {place.port}\n")
    elsewhere = socket.create_connection(("127.0.0.1", place.port))
    assert greets(place.address(host="spark-1", port=None), elsewhere)
    assert elsewhere.fileno() == -1


def test_nothing_is_begun_where_ssh_config_may_lead_elsewhere(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "paramiko")
    begun = dial.ahead(place.address())
    assert begun is not None
    begun.close()
    assert dial.ahead(place.address(jump="a")) is None
    (place.ssh / "config").write_text("Host spark-1\n  hostname 10.0.0.1\n")
    assert dial.ahead(place.address()) is None


def test_a_connection_under_way_is_used_once_it_is_there(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as early:
        early.delitem(sys.modules, "paramiko")
        begun = dial.begin(place.address())
        assert dial.begin(place.address(host="localhost")) is None
        assert dial.begin(place.address(jump="a")) is None
        nobody = dial.begin(place.address(port=free_port()))
    assert begun is not None and nobody is not None
    assert dial.ahead(place.address(), begun) is begun
    assert greets(place.address(), begun)
    assert len(place.server.connections) == 1
    assert dial.ahead(place.address(), nobody) is None
    assert nobody.fileno() == -1


LOADED = """
import sys
from sparkops.transport import lean
lean.load()
import sparkops.transport.ssh
print(sorted({"fabric", "invoke", "paramiko"} & sys.modules.keys()))
import invoke
import paramiko.config
print(paramiko.config.invoke is not None)
"""


@pytest.mark.parametrize(
    ("config", "loaded", "there"),
    [("Host *\n  User me\n", ["paramiko"], False), ("Match exec true\n  User me\n", ["invoke", "paramiko"], True)],
)
def test_invoke_is_loaded_for_match_exec_alone(place: Place, config: str, loaded: list[str], there: bool) -> None:
    (place.ssh / "config").write_text(config)
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, env={**os.environ})
    assert done.stdout == f"{loaded}\n{there}\n", done.stderr


def test_many_at_once_load_it_once(place: Place) -> None:
    code = (
        "import threading, sys\nfrom sparkops.transport import lean\n"
        "ts = [threading.Thread(target=lean.load) for _ in range(16)]\n"
        "[t.start() for t in ts]; [t.join() for t in ts]\n"
        "print('invoke' in sys.modules, 'paramiko' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ})
    assert done.stdout == "False True\n", done.stderr
