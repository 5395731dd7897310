"""The fabric connection that an address means, for hosts behind others: ssh_config, jump hosts, keys and host keys.

Nothing is opened here.
"""

from __future__ import annotations

from pathlib import Path

from fabric import Config, Connection

from sparkops.errors import InputError
from sparkops.transport.address import Address
from sparkops.transport.policy import RejectUnknown


def connection(address: Address) -> Connection:
    """The connection to a host, through its jump hosts if it has any; not open yet. Raises InputError."""
    gateway = None
    for hop in (address.jump or "").split(","):
        if hop.strip():
            user, host, port = split_hop(hop.strip(), address.name)
            gateway = _connection(address, host, user, port, gateway)
    return _connection(address, address.host, address.user, address.port, gateway)


def split_hop(hop: str, where: str) -> tuple[str | None, str, int | None]:
    """(user, host, port) of one hop of ProxyJump: [user@]host[:port], an IPv6 host in brackets. Raises InputError."""
    user, _, rest = hop.rpartition("@")
    if rest.startswith("["):
        host, _, port = rest[1:].partition("]")
        port = port.removeprefix(":")
    else:
        host, _, port = rest.partition(":")
    if not host or (port and not port.isdigit()):
        raise InputError(f"{hop!r} is no jump host", where=where, hint="it is [user@]host[:port], IPv6 as [::1]:22")
    return user or None, host, int(port) if port else None


def place(address: Address) -> tuple[str, int]:
    """(host, port) where a host is, by ssh_config: known_hosts has it under these."""
    found = _bare(address, address.host, address.user, address.port, None)
    return found.host, found.port


def _connection(
    address: Address, host: str, user: str | None, port: int | None, gateway: Connection | None
) -> Connection:
    found = _bare(address, host, user, port, gateway)
    client = found.client
    client.set_missing_host_key_policy(RejectUnknown(address.name))
    for file in address.known_hosts:
        path = Path(file).expanduser()
        if path.exists():
            client.load_system_host_keys(str(path))
    if not address.known_hosts:
        client.load_system_host_keys()
    return found


def _bare(address: Address, host: str, user: str | None, port: int | None, gateway: Connection | None) -> Connection:
    keys = {"key_filename": str(Path(address.key_file).expanduser())} if address.key_file else {}
    return Connection(
        host,
        user=user,
        port=port,
        gateway=gateway,
        config=Config(overrides={"timeouts": {"connect": address.timeout}}),
        connect_kwargs={**keys, "allow_agent": not keys, "look_for_keys": not keys},
    )


def close(found: Connection) -> None:
    """Close a connection and the jump hosts behind it."""
    found.close()
    if isinstance(found.gateway, Connection):
        close(found.gateway)
