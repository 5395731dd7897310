"""A channel over SSH: fabric makes the connection (ssh_config, jump hosts, keys), the bytes are ours.

Host keys are always checked; a host without a recorded key is an error with its cure, as is one whose key changed.
"""

from __future__ import annotations

import contextlib
import shlex
import socket
from pathlib import Path

import paramiko
import tenacity
from fabric import Config, Connection
from paramiko.ssh_exception import NoValidConnectionsError

from sparkops.errors import ConnectionLost, HostKeyError, HostUnreachable
from sparkops.node import bundle
from sparkops.transport.address import Address
from sparkops.transport.hostkeys import fingerprint

ATTEMPTS = 3
STDERR_KEPT = 2000


class RejectUnknown(paramiko.MissingHostKeyPolicy):
    """Refuse a host whose key nobody has recorded."""

    def __init__(self, name: str) -> None:
        self._name = name

    def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> None:  # noqa: ARG002
        """paramiko's protocol."""
        raise HostKeyError(
            f"the host key of {hostname} is not recorded ({key.get_name()} {fingerprint(key)})",
            where=self._name,
            hint=f"compare the fingerprint with the node's own, then: sparkops trust {self._name}",
        )


class SshChannel:
    """The executor's stdin, stdout and stderr on one connection."""

    def __init__(self, connection: Connection, python: str) -> None:
        self._connection = connection
        transport = connection.transport
        transport.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
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
        return said.decode("utf-8", "replace").strip()

    def close(self) -> None:
        """See Channel."""
        # Transport.close alone leaves its thread polling for 0.1 s (FACTS §6).
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._connection.close()


def connect(address: Address) -> SshChannel:
    """Log in and start the executor. Raises HostUnreachable or HostKeyError."""
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


def _reason(error: Exception) -> str:
    if isinstance(error, NoValidConnectionsError):
        return "; ".join(dict.fromkeys(getattr(one, "strerror", "") or str(one) for one in error.errors.values()))
    return str(error) or type(error).__name__


def _connect(address: Address) -> SshChannel:
    connection = _connection(address, address.host, address.user, address.port, _gateway(address))
    connection.open()
    return SshChannel(connection, address.python)


def _gateway(address: Address) -> Connection | None:
    if not address.jump:
        return None
    user, _, rest = address.jump.rpartition("@")
    name, _, port = rest.partition(":")
    return _connection(address, name, user or None, int(port) if port else None, None)


def _connection(
    address: Address, host: str, user: str | None, port: int | None, gateway: Connection | None
) -> Connection:
    keys = {"key_filename": str(Path(address.key_file).expanduser())} if address.key_file else {}
    connection = Connection(
        host,
        user=user,
        port=port,
        gateway=gateway,
        config=Config(overrides={"timeouts": {"connect": address.timeout}}),
        connect_kwargs={**keys, "allow_agent": not keys, "look_for_keys": not keys},
    )
    client = connection.client
    client.set_missing_host_key_policy(RejectUnknown(address.name))
    if address.known_hosts:
        for file in address.known_hosts:
            if Path(file).expanduser().exists():
                client.load_system_host_keys(str(Path(file).expanduser()))
    else:
        client.load_system_host_keys()
    return connection
