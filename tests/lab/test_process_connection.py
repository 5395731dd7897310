"""A node of the process lab as sparkops itself connects to it."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

from sparkops.lab.process.sandbox import login_name
from sparkops.transport.address import Address
from sparkops.transport.ssh import GONE_MS, connect
from tests.lab.processlab import process_lab


@pytest.mark.skipif(sys.platform != "linux", reason="TCP_USER_TIMEOUT is Linux's")
def test_a_connection_that_nobody_answers_ends_in_a_minute(tmp_path: Path) -> None:
    with process_lab(tmp_path / "lab") as lab:
        node = lab.node("spark-1")
        known = (str(lab.dir / "known_hosts"),)
        channel = connect(Address("spark-1", node.address, node.port, login_name(), str(lab.key), known))
        try:
            assert isinstance(channel._socket, socket.socket)
            option = channel._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
        finally:
            channel.close()
    assert option == GONE_MS
