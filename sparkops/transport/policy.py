"""What happens to a host whose key nobody has recorded."""

from __future__ import annotations

import paramiko

from sparkops.errors import HostKeyError
from sparkops.transport.fingerprint import fingerprint


class RejectUnknown(paramiko.MissingHostKeyPolicy):
    """Refuse it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> None:  # noqa: ARG002
        """paramiko's protocol."""
        raise HostKeyError(
            f"the host key of {hostname} is not recorded ({key.get_name()} {fingerprint(key)})",
            where=self._name,
            hint=f"compare the fingerprint with the node's own, then: sparkops trust {self._name}",
        )
