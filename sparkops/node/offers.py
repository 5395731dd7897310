"""Serves one checkpoint to one node, by rsync's daemon, as long as the executor lives that began it.

The listener is ours and hands each connection to a daemon in inetd mode: no port is chosen before it is bound, one
connection is served at a time, and when the executor is gone (or killed) both end within a second.
"""

from __future__ import annotations

import json
import os

from sparkops.node import files
from sparkops.node.api import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from typing import Any

    from sparkops.node.api import Node
    from sparkops.node.jobs import Job

USER = "sparkops"
MODULE = "weights"
POLL = 0.2
# Seconds that a listener may take to come up.
START = 10.0
CONFIG = """\
use chroot = no
log file = /dev/null
[{module}]
path = {path}
read only = yes
list = no
auth users = {user}
secrets file = {secrets}
hosts allow = {allowed}
timeout = 60
"""


class Offer:
    """The one offer of a checkpoint on this node."""

    def __init__(self, path: str, node: Node) -> None:
        from sparkops.node import weights_record as weights
        from sparkops.node.jobs import Job

        self.path = path
        self.node = node
        self.key = weights.job_key(path).replace("weights-", "offer-", 1)
        self.job: Job = Job(node.state_dir, self.key)

    def end(self) -> bool:
        """Take it back. False when there was none."""
        import signal
        import time

        there = os.path.isdir(self.job.folder)
        limit = time.monotonic() + START
        while self.job.running() and time.monotonic() < limit:
            try:
                with open(os.path.join(self.job.folder, "pid"), encoding="ascii") as file:
                    os.kill(int(file.read().split()[0]), signal.SIGTERM)
            except (OSError, ValueError, IndexError):
                pass
            time.sleep(0.005)
        self.job.clear()
        return there

    def begin(self, address: str, to: str, secret: str) -> int:
        """Serve it at `address` to the node at `to`; the port. Raises Failure."""
        import time

        rsync = self.node.which("rsync")
        if rsync is None:
            raise Failure("there is no rsync on this node: provision it first")
        self.end()
        program: str = rsync
        executor, folder = os.getpid(), self.job.folder

        def work(job: Node) -> dict[str, Any]:  # noqa: ARG001
            serve(program, self.path, folder, address, to, secret, executor)
            return {}

        self.node.start_job(self.key, work)
        limit = time.monotonic() + START
        while time.monotonic() < limit:
            said = answer(folder)
            if "port" in said:
                return int(said["port"])
            if "error" in said:
                self.end()
                raise Failure(f"cannot offer the weights at {address}: {said['error']}; is it an address of this node?")
            self.node.pause(0.02)
        raise Failure(f"the offer of {self.path} did not come up within {START:g} s; see {self.job.log}")


def answer(folder: str) -> dict[str, Any]:
    """What the listener has said of itself so far."""
    try:
        with open(os.path.join(folder, "offer.json"), encoding="utf-8") as file:
            said: dict[str, Any] = json.load(file)
            return said
    except (OSError, ValueError):
        return {}


def config(path: str, secrets: str, to: str) -> str:
    """The daemon's configuration."""
    return CONFIG.format(module=MODULE, path=path.replace("%", "%%"), user=USER, secrets=secrets, allowed=to)


class Ended(Exception):
    """Somebody said TERM."""


def end_now(*_: object) -> None:
    """SIGTERM's handler: raised where the listener is, so that it does not wait for a look at the clock."""
    import signal

    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Ended


def serve(rsync: str, path: str, folder: str, address: str, to: str, secret: str, executor: int) -> None:
    """The detached part: one connection after the other, until the executor is gone or somebody says TERM."""
    import signal

    try:
        signal.signal(signal.SIGTERM, end_now)
        listen(rsync, path, folder, address, to, secret, executor)
    except Ended:
        return


def listen(rsync: str, path: str, folder: str, address: str, to: str, secret: str, executor: int) -> None:
    """See serve. Raises Ended."""
    import socket

    said: dict[str, Any]
    try:
        listener = socket.create_server((address, 0), family=socket.AF_INET6 if ":" in address else socket.AF_INET)
        said = {"port": listener.getsockname()[1]}
    except OSError as error:
        said = {"error": error.strerror or str(error)}
    secrets = os.path.join(folder, "secrets")
    files.write(secrets, f"{USER}:{secret}\n".encode(), 0o600)
    files.write(os.path.join(folder, "rsyncd.conf"), config(os.path.realpath(path), secrets, to).encode(), 0o600)
    files.write(os.path.join(folder, "offer.json"), json.dumps(said).encode(), 0o600)
    if "error" in said:
        return
    listener.settimeout(POLL)
    with listener:
        while os.getppid() == executor:
            try:
                connection, peer = listener.accept()
            except TimeoutError:
                continue
            except OSError as error:
                if "timed out" in str(error):
                    continue
                raise
            with connection:
                if peer[0] == to:
                    hand_over(rsync, os.path.join(folder, "rsyncd.conf"), connection, executor)


def hand_over(rsync: str, conf: str, connection: socket.socket, executor: int) -> None:
    """One connection, to a daemon of its own. Raises Ended."""
    import subprocess
    import time

    from sparkops.node.hubclient import die_with_parent
    from sparkops.node.process import end

    connection.setblocking(True)
    daemon = subprocess.Popen(
        [rsync, "--daemon", f"--config={conf}"],
        stdin=connection.fileno(),
        stdout=subprocess.DEVNULL,
        preexec_fn=die_with_parent,
        start_new_session=True,
    )
    connection.close()
    try:
        while daemon.poll() is None and os.getppid() == executor:
            time.sleep(POLL / 4)
    finally:
        if daemon.poll() is None:
            end(daemon)
