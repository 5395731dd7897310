"""Logging in to a host that nothing stands in front of, with as little as it takes.

The words are ssh_config's, read as fabric reads them; the log-in is paramiko's own SSHClient. What is done once for all
hosts: ssh_config, known_hosts and the key file are read. What the socket does: see QuickSocket.
"""

from __future__ import annotations

import functools
import getpass
import socket
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import paramiko

from sparkops.transport import known
from sparkops.transport.address import Address
from sparkops.transport.lean import config_texts
from sparkops.transport.policy import RejectUnknown

# Linux has it, macOS does not.
TCP_QUICKACK: int | None = getattr(socket, "TCP_QUICKACK", None)
# Bytes that are asked of the kernel at once.
AHEAD = 1 << 16
_reading = threading.Lock()


@dataclass(frozen=True)
class Login:
    """Where a host is and how to log in. agent: the agent's keys and the usual files of ~/.ssh are tried too."""

    host: str
    port: int
    user: str
    keys: tuple[str, ...]
    agent: bool
    timeout: float


class QuickSocket(socket.socket):
    """A TCP socket that neither waits before it sends nor before it acknowledges: each stalls a log-in by 40 ms several
    times (FACTS §6). The kernel forgets the second with each receive.

    It takes in what there is and hands it out in pieces: paramiko asks for each packet twice, and every time the kernel
    is asked another thread may take over.
    """

    def __init__(self, plain: socket.socket) -> None:
        timeout = plain.gettimeout()
        super().__init__(fileno=plain.detach())
        self.settimeout(timeout)
        self.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._ahead = b""

    def recv(self, size: int, flags: int = 0, /) -> bytes:
        """As of a socket."""
        data = self._ahead
        if not data:
            data = super().recv(AHEAD, flags)
            if TCP_QUICKACK is not None:
                self.setsockopt(socket.IPPROTO_TCP, TCP_QUICKACK, 1)
        self._ahead = data[size:]
        return data[:size]


def resolve(address: Address) -> Login | None:
    """How to log in to a host; None when it is reached through another host or a program."""
    said = _ssh_config().lookup(address.host)
    if address.jump or "proxyjump" in said or "proxycommand" in said:
        return None
    own = (str(Path(address.key_file).expanduser()),) if address.key_file else ()
    return Login(
        host=said.get("hostname", address.host),
        port=address.port or int(said.get("port", 22)),
        user=address.user or said.get("user", getpass.getuser()),
        keys=(*own, *said.get("identityfile", ())),
        agent=not own,
        timeout=float(said.get("connecttimeout", address.timeout)),
    )


def log_in(address: Address, login: Login, plain: socket.socket | None = None) -> paramiko.SSHClient:
    """A client that is logged in, over `plain` when there is a connection. Raises what SSHClient.connect raises, and
    HostKeyError.
    """
    client = paramiko.SSHClient()
    client.set_missing_host_key_policy(RejectUnknown(address.name))
    name, recorded = known.entry_name(login.host, login.port), client.get_host_keys()
    for key in known.keys(address.known_hosts, name, address.name):
        # As with paramiko's own reading, the first of a type counts.
        if key.get_name() not in (recorded.lookup(name) or ()):
            recorded.add(name, key.get_name(), key)
    loaded = _loaded(login.keys[0], login.agent) if len(login.keys) == 1 else None
    try:
        client.connect(
            login.host,
            login.port,
            login.user,
            pkey=loaded,
            # A list is what its own code takes and its stubs do not know.
            key_filename=None if loaded else list(login.keys),  # type: ignore[arg-type]
            timeout=login.timeout,
            sock=plain,
            allow_agent=login.agent,
            look_for_keys=login.agent,
            transport_factory=_transport,  # type: ignore[arg-type]
        )
    except BaseException:
        client.close()
        raise
    return client


def _transport(plain: socket.socket, **options: Any) -> paramiko.Transport:
    made = paramiko.Transport(QuickSocket(plain), **options)
    ciphers = made.get_security_options().ciphers
    # They need no second pass over each packet for its checksum, which paramiko compares byte by byte in Python.
    made.get_security_options().ciphers = sorted(ciphers, key=lambda name: "-gcm" not in name)
    return made


def _ssh_config() -> paramiko.SSHConfig:
    with _reading:
        return _parsed(config_texts())


@functools.lru_cache(maxsize=4)
def _parsed(texts: tuple[str, ...]) -> paramiko.SSHConfig:
    found = paramiko.SSHConfig()
    for text in texts:
        found.parse(text.splitlines(keepends=True))
    return found


def _loaded(file: str, agent: bool) -> paramiko.PKey | None:
    """A key file's key; None when paramiko has to look at it itself: a file that is none, one with a passphrase that
    the agent may have. Raises PasswordRequiredException where no agent is asked.
    """
    try:
        with _reading:
            return _key(file, Path(file).stat().st_mtime_ns)
    except (TypeError, paramiko.PasswordRequiredException):
        if agent:
            return None
        raise paramiko.PasswordRequiredException(
            f"{file} has a passphrase; give it to ssh-agent, and take the file out of the inventory"
        ) from None
    except (OSError, ValueError, paramiko.SSHException):
        return None


@functools.lru_cache(maxsize=64)
def _key(file: str, changed: int) -> paramiko.PKey:  # noqa: ARG001
    return paramiko.PKey.from_path(file)
