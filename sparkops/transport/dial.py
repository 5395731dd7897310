"""The TCP connection to a host that is begun before paramiko is imported.

That import takes as long as a node's sshd needs to come up for a connection, on the first host of each run.
"""

from __future__ import annotations

import re
import select
import socket
import sys

from sparkops.transport.address import Address
from sparkops.transport.lean import config_texts

# Seconds; after these the usual way is taken, which says what is wrong.
PATIENCE = 1.0
# Words of ssh_config with which a host may be somewhere else than its address says.
ELSEWHERE = re.compile(r"(?im)^\s*(hostname|port|proxyjump|proxycommand|match|addressfamily|bindaddress)\b")


def begin(address: Address) -> socket.socket | None:
    """A connection under way to where the host is, without a wait; None: as with `ahead`, or its address is a name,
    for which others would have to be asked first.
    """
    if not _direct(address):
        return None
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        socket.inet_pton(family, address.host)
    except OSError:
        return None
    begun = socket.socket(family, socket.SOCK_STREAM)
    begun.setblocking(False)
    begun.connect_ex((address.host, address.port or 22))
    return begun


def ahead(address: Address, begun: socket.socket | None = None) -> socket.socket | None:
    """A connection to where the host is, `begun` if there is one, or None: when paramiko is there already, when
    ssh_config or a jump host may lead elsewhere, or when nobody answers at once.
    """
    patience = min(PATIENCE, address.timeout)
    if begun is not None:
        made = select.select([], [begun], [], patience)[1] and not begun.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if made:
            begun.settimeout(patience)
            return begun
        begun.close()
        return None
    if not _direct(address):
        return None
    try:
        return socket.create_connection((address.host, address.port or 22), patience)
    except OSError:
        return None


def _direct(address: Address) -> bool:
    known = "paramiko" in sys.modules or address.connection != "ssh" or bool(address.jump)
    return not known and not any(ELSEWHERE.search(text) for text in config_texts())
