"""A command that a client runs on a node: its streams tied to an SSH channel, as sshd does without a terminal."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable
from threading import Thread
from typing import IO

import paramiko

# What is read from a pipe or a channel at once: with less, paramiko's work per call dominates.
BLOCK = 256 * 1024
# Linux: a pipe holds 64 KiB unless told (fcntl's F_SETPIPE_SZ); with more, both sides switch less often.
F_SETPIPE_SZ = 1031


class Session:
    """One exec request. A client that goes away closes the command's streams and leaves the command alone."""

    def __init__(self, channel: paramiko.Channel, spawn: Callable[[], subprocess.Popen[bytes]]) -> None:
        self.channel = channel
        self.spawn = spawn

    def start(self) -> None:
        """Start the command and relay in threads of its own."""
        Thread(target=self.run, name=f"session {self.channel.get_id()}", daemon=True).start()

    def run(self) -> None:
        """Relay until the command has ended and its output is at its end, then say how it ended."""
        try:
            process = self.spawn()
        except OSError as error:
            with contextlib.suppress(OSError):
                self.channel.sendall_stderr(f"{error}\n".encode())
                self.channel.send_exit_status(255)
            self.channel.close()
            return
        assert process.stdin and process.stdout and process.stderr
        pumps = [
            Thread(target=take, args=(process.stdout, self.channel.sendall), daemon=True),
            Thread(target=take, args=(process.stderr, self.channel.sendall_stderr), daemon=True),
        ]
        feeder = Thread(target=feed, args=(self.channel, process.stdin), daemon=True)
        for thread in (*pumps, feeder):
            thread.start()
        status = process.wait()
        # As in sshd, a child that holds the output open holds the channel open.
        for thread in pumps:
            thread.join()
        report(self.channel, status)
        self.channel.close()
        feeder.join()


def feed(channel: paramiko.Channel, pipe: IO[bytes]) -> None:
    """Channel to pipe. When the reader is gone the rest is thrown away, so that the client's window stays open."""
    with pipe:
        grow(pipe)
        with contextlib.suppress(OSError):
            while data := channel.recv(BLOCK):
                rest = memoryview(data)
                while rest:
                    rest = rest[os.write(pipe.fileno(), rest) :]
    while channel.recv(BLOCK):
        pass


def take(pipe: IO[bytes], send: Callable[[bytes], object]) -> None:
    """Pipe to channel, until the end of either. A closed pipe is what tells the command that nobody listens."""
    with pipe, contextlib.suppress(OSError):
        grow(pipe)
        while data := os.read(pipe.fileno(), BLOCK):
            send(data)


def grow(pipe: IO[bytes]) -> None:
    """Give a pipe a large buffer, where that can be done."""
    with contextlib.suppress(ImportError, OSError):
        import fcntl

        fcntl.fcntl(pipe.fileno(), F_SETPIPE_SZ, BLOCK)


def report(channel: paramiko.Channel, status: int) -> None:
    """Send the exit status, or the signal that ended the command (RFC 4254, 6.10)."""
    if channel.closed:
        return
    if status >= 0:
        channel.send_exit_status(status)
        return
    message = paramiko.Message()
    message.add_byte(bytes([paramiko.common.MSG_CHANNEL_REQUEST]))
    message.add_int(channel.remote_chanid)
    message.add_string("exit-signal")
    message.add_boolean(False)
    message.add_string(signal.Signals(-status).name.removeprefix("SIG"))
    message.add_boolean(False)  # no core dump
    message.add_string("")
    message.add_string("")
    # paramiko has no public way to send this request.
    channel.get_transport()._send_user_message(message)  # type: ignore[attr-defined]
