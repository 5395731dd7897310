"""A node's server process: SSH, the user's units, and a socket for the lab.

Run as a process of its own: python -m sparkops.lab.process.node DIR/nodes/NAME USER PORT
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from pathlib import Path
from threading import Event

import paramiko

from sparkops.lab.process.control import Control, Reply
from sparkops.lab.process.ports import ADDRESS
from sparkops.lab.process.sandbox import Sandbox
from sparkops.lab.process.sshd import Login, Sshd
from sparkops.lab.process.systemd.journal import Journal
from sparkops.lab.process.systemd.manager import Manager
from sparkops.lab.process.systemd.systemctl import systemctl
from sparkops.lab.process.systemd.tools import journalctl, loginctl


class Node:
    """A simulated machine that is on, from its boot to `poweroff`."""

    def __init__(self, sandbox: Sandbox, user: str, port: int) -> None:
        self.sandbox = sandbox
        self.user = user
        self.environment = sandbox.environment()
        journal = Journal(sandbox.dir / "journal")
        base = {**self.environment, **sandbox.unit_environment()}
        self.manager = Manager(base, journal, sandbox.name, sandbox.dir / "linger")
        self.key = public_key(sandbox.authorized_key.read_text())
        host_key = paramiko.Ed25519Key.from_private_key_file(str(sandbox.host_key))
        self.sshd = Sshd(ADDRESS, port, host_key, self.login)
        self.control = Control(
            {
                "systemctl": lambda argv: systemctl(self.manager, argv),
                "journalctl": lambda argv: journalctl(self.manager, argv),
                "loginctl": lambda argv: loginctl(self.manager, argv),
                "node": self.command,
            }
        )

    def login(self) -> Login:
        """What a new connection meets."""
        return Login(self.user, self.key, self.spawn, self.manager.enter)

    def spawn(self, command: bytes) -> subprocess.Popen[bytes]:
        """Start a command as a login would, in a session of its own."""
        pipe = subprocess.PIPE
        return subprocess.Popen(
            ["/bin/sh", "-c", command],
            cwd=self.sandbox.home,
            env=self.environment,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            bufsize=0,
            start_new_session=True,
        )

    def command(self, argv: list[str]) -> Reply:
        """What the driver asks for: `cut`, `mend`, `state`."""
        if argv == ["cut"] and not self.sandbox.cut.exists():
            self.sandbox.cut.touch()
            self.sshd.cut()
        if argv == ["mend"] and self.sandbox.cut.exists():
            self.sshd.listen()
            self.sandbox.cut.unlink()
        if self.sandbox.cut.exists():
            return Reply(0, "cut")
        failed = any(service.state.active == "failed" for service in self.manager.services.values())
        return Reply(0, "degraded" if failed else "running")

    def boot(self) -> None:
        """Answer the lab, clients too unless the cable is cut, and start the units that are enabled."""
        self.control.start()
        if not self.sandbox.cut.exists():
            self.sshd.listen()
        self.manager.boot()

    def poweroff(self) -> None:
        """Drop the clients and stop the units."""
        self.sshd.cut()
        self.manager.stop_all()


def public_key(line: str) -> paramiko.PKey:
    """The key of a line of authorized_keys."""
    import base64

    kind, blob = line.split()[:2]
    return paramiko.PKey.from_type_string(kind, base64.b64decode(blob))


def main(argv: list[str]) -> None:
    """Be a node until SIGTERM; argv as the module's docstring has it."""
    folder, user, port = argv
    logging.basicConfig(format="%(asctime)s %(name)s: %(message)s", level=logging.WARNING)
    off = Event()
    signal.signal(signal.SIGTERM, lambda *_: off.set())
    sandbox = Sandbox(Path(folder))
    os.chdir(sandbox.run)
    node = Node(sandbox, user, int(port))
    node.boot()
    off.wait()
    node.poweroff()


if __name__ == "__main__":
    main(sys.argv[1:])
