"""A channel over SSH: paramiko makes the connection, fabric where jump hosts are to be passed; the bytes are ours.

Host keys are always checked; a host without a recorded key is an error with its cure, as is one whose key changed.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import shlex
import socket
from collections.abc import Callable

import paramiko
import tenacity
from paramiko.common import cMSG_CHANNEL_REQUEST
from paramiko.ssh_exception import NoValidConnectionsError

from sparkops.errors import ConnectionLost, HostKeyError, HostUnreachable
from sparkops.node import bundle
from sparkops.transport.address import Address
from sparkops.transport.direct import log_in, resolve
from sparkops.transport.fingerprint import fingerprint

ATTEMPTS = 3
STDERR_KEPT = 2000
# paramiko raises EOFError where a socket was closed meanwhile.
BROKEN = (OSError, EOFError, paramiko.SSHException)
# Milliseconds in which a node's kernel must acknowledge what is sent (pings come each 10 s): then it is gone. The
# system's own limit is a quarter of an hour, in which a rolling deploy would stand still.
GONE_MS = 60_000
# Bytes that go into one packet of OpenSSH's (32 KiB with what paramiko adds).
PACKET = 32768 - 64


class SshChannel:
    """The executor's stdin, stdout and stderr on one connection."""

    def __init__(self, transport: paramiko.Transport, python: str, close: Callable[[], None]) -> None:
        self._hang_up = close
        set_options(transport)
        transport.set_keepalive(30)
        self._transport = transport
        self._socket = transport.sock
        self._channel = transport.open_session()
        request(transport, self._channel, shlex.join(bundle.argv(python)))

    def write(self, data: bytes) -> None:
        """See Channel."""
        try:
            # A packet at a time: sendall copies what is left of its buffer for each (FACTS §6).
            for start in range(0, len(data), PACKET):
                self._channel.sendall(data[start : start + PACKET])
        except BROKEN as error:
            raise ConnectionLost(f"the connection broke: {self.last_words() or _reason(error)}") from None

    def read(self) -> bytes:
        """See Channel."""
        try:
            data: bytes = self._channel.recv(262144)
            return data
        except BROKEN as error:
            raise ConnectionLost(f"the connection broke: {_reason(error)}") from None

    def last_words(self) -> str:
        """See Channel."""
        said = b""
        while self._channel.recv_stderr_ready() and len(said) < STDERR_KEPT:
            said += self._channel.recv_stderr(STDERR_KEPT)
        # The program's, else the network's.
        broken = self._transport.get_exception() if not said else None
        why = "" if broken is None else _reason(broken)
        return said.decode("utf-8", "replace").strip() or why

    def close(self) -> None:
        """See Channel."""
        # Transport.close alone leaves its thread polling for 0.1 s (FACTS §6).
        if isinstance(self._socket, socket.socket):
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
        self._hang_up()


def set_options(transport: paramiko.Transport) -> None:
    """Small frames at once, and an end for a connection whose other side has vanished."""
    # Behind a jump host it is a channel, which has no such options.
    if isinstance(sock := transport.sock, socket.socket):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # macOS has no such option.
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, GONE_MS)


def request(transport: paramiko.Transport, channel: paramiko.Channel, command: str) -> None:
    """Start a command without waiting for the answer: the frames may follow at once, which saves a round trip. When it
    is refused the channel is closed. (paramiko has no public way not to wait.)
    """
    message = paramiko.Message()
    message.add_byte(cMSG_CHANNEL_REQUEST)
    message.add_int(channel.remote_chanid)
    message.add_string("exec")
    message.add_boolean(True)
    message.add_string(command)
    transport._send_user_message(message)  # type: ignore[attr-defined]


def connect(address: Address, plain: socket.socket | None = None) -> SshChannel:
    """Log in and start the executor; `plain` is a connection to address.host and port that the first try may use.

    Raises HostUnreachable or HostKeyError.
    """
    # Whatever it logs it raises too; on a terminal the line would land in the picture.
    logging.getLogger("paramiko").setLevel(logging.CRITICAL)
    waiting = [plain] if plain is not None else []
    retry = tenacity.Retrying(
        retry=tenacity.retry_if_exception_type((TimeoutError, ConnectionError, NoValidConnectionsError)),
        stop=tenacity.stop_after_attempt(ATTEMPTS),
        wait=tenacity.wait_exponential(multiplier=0.2, max=2),
        reraise=True,
    )
    try:
        return retry(lambda: _connect(address, waiting.pop() if waiting else None))
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


def _reason(error: Exception) -> str:
    if isinstance(error, NoValidConnectionsError):
        return "; ".join(dict.fromkeys(getattr(one, "strerror", "") or str(one) for one in error.errors.values()))
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if isinstance(error, EOFError):
        return "the other side is gone"
    return str(error) or type(error).__name__


def _connect(address: Address, plain: socket.socket | None) -> SshChannel:
    login = resolve(address)
    if plain is not None and (login is None or (login.host, login.port) != (address.host, address.port or 22)):
        plain.close()
        plain = None
    if login is None:
        return _through_others(address)
    client = log_in(address, login, plain)
    return _started(address, client.get_transport(), client.close)


def _through_others(address: Address) -> SshChannel:
    from sparkops.transport.connection import close, connection

    found = connection(address)
    hang_up = functools.partial(close, found)
    try:
        found.open()
    except BaseException:
        hang_up()
        raise
    hop = found.gateway
    while hop is not None:
        set_options(hop.transport)
        hop = hop.gateway
    return _started(address, found.transport, hang_up)


def _started(address: Address, transport: paramiko.Transport | None, hang_up: Callable[[], None]) -> SshChannel:
    assert transport is not None
    try:
        return SshChannel(transport, address.python, hang_up)
    except BaseException:
        hang_up()
        raise
