"""Host keys: how they are shown, looked up in known_hosts files, and recorded by `sparkops trust`."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import paramiko

from sparkops.errors import HostUnreachable
from sparkops.transport.address import Address
from sparkops.transport.connection import close, connection, place


def entry_name(address: Address) -> str:
    """The name under which a host stands in known_hosts: where ssh_config says that it is."""
    host, port = place(address)
    return host if port == 22 else f"[{host}]:{port}"


def record_file(address: Address) -> Path:
    """Where a new key goes: the host's own known_hosts file, else the user's."""
    return Path(address.known_hosts[0] if address.known_hosts else "~/.ssh/known_hosts").expanduser()


def offered(address: Address) -> paramiko.PKey:
    """The key that a host offers now; nobody logs in. Raises HostUnreachable."""
    found = connection(address)
    try:
        if found.gateway:
            plain = found.open_gateway()
        else:
            plain = socket.create_connection((found.host, found.port or 22), address.timeout)
        transport = paramiko.Transport(plain)
        try:
            transport.start_client(timeout=address.timeout)
            return transport.get_remote_server_key()
        finally:
            transport.close()
    except (OSError, paramiko.SSHException, EOFError) as error:
        raise HostUnreachable(f"no SSH answer from {entry_name(address)}: {error}", where=address.name) from None
    finally:
        close(found)


def recorded(address: Address) -> list[paramiko.PKey]:
    """The keys on record for a host, of any type."""
    keys = paramiko.HostKeys()
    for file in address.known_hosts or ("~/.ssh/known_hosts",):
        path = Path(file).expanduser()
        if path.exists():
            keys.load(str(path))
    return list((keys.lookup(entry_name(address)) or {}).values())


def record(address: Address, key: paramiko.PKey) -> Path:
    """Add a key, in place of any other for that host; other lines stay as they are. Returns the file."""
    path = record_file(address)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lines = path.read_text().splitlines() if path.exists() else []
    kept = [line for old in lines if (line := _without(old, entry_name(address))) is not None]
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    beside.write_text("\n".join([*kept, f"{entry_name(address)} {key.get_name()} {key.get_base64()}"]) + "\n")
    beside.chmod(0o600)
    beside.replace(path)
    return path


def _without(line: str, name: str) -> str | None:
    """A known_hosts line without one host's name; None when it was the only one. Names may be hashed (|1|...)."""
    names, _, rest = line.partition(" ")
    if not rest or line.startswith(("#", "@")):
        return line
    left = [one for one in names.split(",") if name != one and not _hashes(one, name)]
    if not left:
        return None
    return f"{','.join(left)} {rest}"


def _hashes(hashed: str, name: str) -> bool:
    return hashed.startswith("|1|") and paramiko.HostKeys.hash_host(name, hashed) == hashed
