"""The socket of a node's server process: a request is a JSON line [tool, arguments], the answer [status, out, err]."""

from __future__ import annotations

import contextlib
import json
import socketserver
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Thread
from typing import NamedTuple

from sparkops.lab.process.client import SOCKET


class Reply(NamedTuple):
    """What a tool prints and how it ends."""

    status: int = 0
    out: str = ""
    err: str = ""


Tool = Callable[[list[str]], Reply]


class Control(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """Answers requests, each in a thread. The current directory has to be the node's `run` folder."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, tools: Mapping[str, Tool]) -> None:
        self.tools = tools
        Path(SOCKET).unlink(missing_ok=True)  # what a node that was killed left
        super().__init__(SOCKET, Request)

    def start(self) -> None:
        """Answer in a thread."""
        Thread(target=self.serve_forever, name="control", daemon=True).start()


class Request(socketserver.StreamRequestHandler):
    """One request."""

    server: Control

    def handle(self) -> None:
        line = self.rfile.readline()
        if not line:
            return
        name, arguments = json.loads(line)
        reply = self.server.tools[name](arguments)
        with contextlib.suppress(OSError):  # who asked may have gone
            self.wfile.write(json.dumps(reply).encode() + b"\n")
