"""The TCP connection to a host that is begun before paramiko is imported.

That import takes as long as a node's sshd needs to come up for a connection, on the first host of each run.
"""

from __future__ import annotations

import re
import socket
import sys

from sparkops.transport.address import Address
from sparkops.transport.lean import config_texts

# Seconds; after these the usual way is taken, which says what is wrong.
PATIENCE = 1.0
# Words of ssh_config with which a host may be somewhere else than its address says.
ELSEWHERE = re.compile(r"(?im)^\s*(hostname|port|proxyjump|proxycommand|match|addressfamily|bindaddress)\b")


def ahead(address: Address) -> socket.socket | None:
    """A connection to where the host is, or None: when paramiko is there already, when ssh_config or a jump host may
    lead elsewhere, or when nobody answers at once.
    """
    if "paramiko" in sys.modules or address.jump or any(ELSEWHERE.search(text) for text in config_texts()):
        return None
    try:
        return socket.create_connection((address.host, address.port or 22), min(PATIENCE, address.timeout))
    except OSError:
        return None
