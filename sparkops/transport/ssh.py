"""A channel over SSH: fabric makes the connection (ssh_config, jump hosts, keys), the bytes are ours.

Host keys are always checked; a host without a recorded key is an error with its cure, as is one whose key changed.
"""

from __future__ import annotations

import contextlib
import logging
import shlex
import socket

import paramiko
import tenacity
from fabric import Connection
from paramiko.ssh_exception import NoValidConnectionsError

from sparkops.errors import ConnectionLost, HostKeyError, HostUnreachable
from sparkops.node import bundle
from sparkops.transport.address import Address
from sparkops.transport.connection import close, connection
from sparkops.transport.fingerprint import fingerprint

ATTEMPTS = 3
STDERR_KEPT = 2000
# Milliseconds in which a node's kernel must acknowledge what is sent (pings come each 10 s): then it is gone. The
# system's own limit is a quarter of an hour, in which a rolling deploy would stand still.
GONE_MS = 60_000


class SshChannel:
    """The executor's stdin, stdout and stderr on one connection."""

    def __init__(self, found: Connection, python: str) -> None:
        self._connection = found
        transport = found.transport
        _set_options(found)
        transport.set_keepalive(30)
        self._socket = transport.sock
        self._channel = transport.open_session()
        self._channel.exec_command(shlex.join(bundle.argv(python)))

    def write(self, data: bytes) -> None:
        """See Channel."""
        try:
            self._channel.sendall(data)
        except OSError as error:
            raise ConnectionLost(f"the connection broke: {error}{self.last_words()}") from None

    def read(self) -> bytes:
        """See Channel."""
        try:
            data: bytes = self._channel.recv(262144)
            return data
        except OSError as error:
            raise ConnectionLost(f"the connection broke: {error}") from None

    def last_words(self) -> str:
        """See Channel."""
        said = b""
        while self._channel.recv_stderr_ready() and len(said) < STDERR_KEPT:
            said += self._channel.recv_stderr(STDERR_KEPT)
        # The program's, else the network's.
        broken = self._connection.transport.get_exception() if not said else None
        return said.decode("utf-8", "replace").strip() or (_reason(broken) if broken else "")

    def close(self) -> None:
        """See Channel."""
        # Transport.close alone leaves its thread polling for 0.1 s (FACTS §6).
        if isinstance(self._socket, socket.socket):
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
        close(self._connection)


def connect(address: Address) -> SshChannel:
    """Log in and start the executor. Raises HostUnreachable or HostKeyError."""
    # Whatever it logs it raises too; on a terminal the line would land in the picture.
    logging.getLogger("paramiko").setLevel(logging.CRITICAL)
    retry = tenacity.Retrying(
        retry=tenacity.retry_if_exception_type((TimeoutError, ConnectionError, NoValidConnectionsError)),
        stop=tenacity.stop_after_attempt(ATTEMPTS),
        wait=tenacity.wait_exponential(multiplier=0.2, max=2),
        reraise=True,
    )
    try:
        return retry(_connect, address)
    except paramiko.BadHostKeyException as error:
        raise HostKeyError(
            f"the host key of {error.hostname} has CHANGED: recorded {fingerprint(error.expected_key)},"
            f" offered {fingerprint(error.key)}",
            where=address.name,
            hint="if the node was reinstalled, compare the fingerprint with the node's own, then:"
            f" sparkops trust --replace {address.name}. If not, somebody may be in between",
        ) from None
    except paramiko.AuthenticationException as error:
        raise HostUnreachable(
            f"{address.user or 'the default user'} may not log in: {error}",
            where=address.name,
            hint="check ansible_user and ansible_ssh_private_key_file, and that the node has your public key",
        ) from None
    except (OSError, paramiko.SSHException, EOFError) as error:
        place = address.host if address.port is None else f"{address.host}:{address.port}"
        raise HostUnreachable(f"no SSH connection to {place}: {_reason(error)}", where=address.name) from None


def _set_options(found: Connection) -> None:
    """Small frames at once, and an end for a connection whose other side has vanished, on each socket of the way."""
    hop: object = found
    while isinstance(hop, Connection):
        # Behind a jump host it is a channel, which has no such options.
        if isinstance(sock := hop.transport.sock, socket.socket):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            # macOS has no such option.
            if hasattr(socket, "TCP_USER_TIMEOUT"):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, GONE_MS)
        hop = hop.gateway


def _reason(error: Exception) -> str:
    if isinstance(error, NoValidConnectionsError):
        return "; ".join(dict.fromkeys(getattr(one, "strerror", "") or str(one) for one in error.errors.values()))
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__


def _connect(address: Address) -> SshChannel:
    found = connection(address)
    try:
        found.open()
        return SshChannel(found, address.python)
    except BaseException:
        close(found)
        raise
