"""A lab of the process driver for tests, and a client for its nodes. No network: uv's wheel is left out."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import NamedTuple

import paramiko
import pytest

from sparkops.lab.lab import Lab
from sparkops.lab.process.driver import ProcessDriver, sandbox
from sparkops.lab.process.sandbox import login_name

DRIVER = ProcessDriver()


def no_wheel(cache: Path) -> Path:
    """Stands for sparkops.lab.uv.wheel, which asks the registry."""
    path = cache / "uv-0-py3-none-any.whl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


@contextmanager
def process_lab(folder: Path, count: int = 1, environment: dict[str, str] | None = None) -> Iterator[Lab]:
    """A lab that is up."""
    lab = Lab.create(folder, "process", count, environment=environment)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sparkops.lab.uv.wheel", no_wheel)
            DRIVER.up(lab)
        yield lab
    finally:
        DRIVER.down(lab)


def home(lab: Lab, node: str = "spark-1") -> Path:
    """A node's home."""
    return sandbox(lab, node).home


def transport(lab: Lab, node: str = "spark-1") -> paramiko.Transport:
    """A connection whose host key was checked against the lab's known_hosts, not logged in yet."""
    at = lab.node(node)
    sock = socket.create_connection((at.address, at.port))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection = paramiko.Transport(sock)
    connection.start_client()
    known = paramiko.HostKeys(str(lab.dir / "known_hosts"))
    assert known.check(f"[{at.address}]:{at.port}", connection.get_remote_server_key())
    return connection


@contextmanager
def connected(lab: Lab, node: str = "spark-1") -> Iterator[paramiko.Transport]:
    """A connection, logged in."""
    connection = transport(lab, node)
    try:
        connection.auth_publickey(login_name(), paramiko.Ed25519Key.from_private_key_file(str(lab.key)))
        yield connection
    finally:
        connection.close()


class Done(NamedTuple):
    """How a command ended; -1 for a signal, as paramiko has it."""

    rc: int
    out: bytes
    err: bytes


def execute(connection: paramiko.Transport, command: str, stdin: bytes = b"") -> Done:
    """Run a command to its end."""
    channel = connection.open_session()
    channel.exec_command(command)
    err = bytearray()

    def feed() -> None:
        for start in range(0, len(stdin), 1 << 18):
            channel.sendall(stdin[start : start + (1 << 18)])
        channel.shutdown_write()

    def errors() -> None:
        while data := channel.recv_stderr(1 << 18):
            err.extend(data)

    threads = [Thread(target=feed), Thread(target=errors)]
    for thread in threads:
        thread.start()
    out = bytearray()
    while data := channel.recv(1 << 18):
        out.extend(data)
    for thread in threads:
        thread.join()
    return Done(channel.recv_exit_status(), bytes(out), bytes(err))


def eventually(wanted: Callable[[], object], seconds: float = 10) -> None:
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not wanted():
        assert time.monotonic() < end, "it did not come about in time"
        time.sleep(0.02)
