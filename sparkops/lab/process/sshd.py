"""The SSH server of a simulated node: public keys only, exec requests only."""

from __future__ import annotations

import contextlib
import logging
import socket
import subprocess
from collections.abc import Callable
from threading import Event, Lock, Thread
from typing import cast

import paramiko
from paramiko.common import AUTH_FAILED, AUTH_SUCCESSFUL, MSG_CHANNEL_REQUEST, OPEN_SUCCEEDED
from paramiko.common import OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED as PROHIBITED

from sparkops.lab.process.session import Session

# Bytes a client may send ahead, and at most in one packet: paramiko's own 2 MiB and 32 KiB cost it half the speed.
WINDOW = 8 << 20
PACKET = 128 << 10
BACKLOG = 128

Spawn = Callable[[bytes], subprocess.Popen[bytes]]
log = logging.getLogger(__name__)


class Login(paramiko.ServerInterface):
    """What a client may do: log in as `user` with the one key, and run commands."""

    def __init__(self, user: str, key: paramiko.PKey, spawn: Spawn, entered: Callable[[], None]) -> None:
        self.user = user
        self.key = key
        self.spawn = spawn
        self.entered = entered
        self.sessions: list[Session] = []

    def get_allowed_auths(self, username: str) -> str:  # noqa: ARG002
        return "publickey"

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        return AUTH_SUCCESSFUL if username == self.user and key == self.key else AUTH_FAILED

    def check_channel_request(self, kind: str, chanid: int) -> int:  # noqa: ARG002
        return OPEN_SUCCEEDED if kind == "session" else PROHIBITED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        self.entered()
        self.sessions.append(Session(channel, lambda: self.spawn(command)))
        return True


def answer(channel: paramiko.Channel, message: paramiko.Message) -> None:
    """Handle a channel's request, and only then start the command: paramiko would send the answer after the end of a
    fast command otherwise, and a client takes that for a refusal. (It has no public way to know when it has answered.)
    """
    channel._handle_request(message)  # type: ignore[attr-defined]
    connection = channel.get_transport()
    sessions = cast(Login, connection.server_object).sessions
    while sessions:
        connection.accept(0)  # the channel is the session's from here on, not the queue's
        sessions.pop().start()


class Connection(paramiko.Transport):
    """A client's connection."""

    _channel_handler_table = {**paramiko.Transport._channel_handler_table, MSG_CHANNEL_REQUEST: answer}  # type: ignore[attr-defined]


class Sshd:
    """Listens on one port. `cut` stops that, drops every connection and still holds the port; `listen` undoes it."""

    def __init__(self, address: str, port: int, host_key: paramiko.PKey, login: Callable[[], Login]) -> None:
        self.address = address
        self.port = port
        self.host_key = host_key
        self.login = login
        self.lock = Lock()
        self.connections: list[Connection] = []
        self.socket = self.bound()

    def bound(self) -> socket.socket:
        """A socket that has the port; as long as it does not listen, connections to it are refused."""
        bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((self.address, self.port))
        return bound

    def listen(self) -> None:
        """Accept connections, in a thread."""
        self.socket.listen(BACKLOG)
        Thread(target=self.serve, args=(self.socket,), name="sshd", daemon=True).start()

    def serve(self, listening: socket.socket) -> None:
        """Take connections until the socket is closed."""
        with contextlib.suppress(OSError):
            while True:
                self.welcome(listening.accept()[0])

    def welcome(self, client: socket.socket) -> None:
        """Start a connection; the rest happens in its own thread."""
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = Connection(client, default_window_size=WINDOW, default_max_packet_size=PACKET)
        connection.add_server_key(self.host_key)
        with self.lock:
            self.connections = [c for c in self.connections if c.is_alive()] + [connection]
        connection.start_server(event=Event(), server=self.login())

    def cut(self) -> None:
        """Refuse new connections and drop those there are."""
        with contextlib.suppress(OSError):  # it does not listen
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        with self.lock:
            dropped, self.connections = self.connections, []
        for connection in dropped:
            with contextlib.suppress(OSError):  # the client was faster
                connection.sock.shutdown(socket.SHUT_RDWR)
            connection.close()
        self.socket = self.bound()
