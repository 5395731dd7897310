"""Tasks of another user: an executor started by sudo, fed on a pipe, so that order and answers stay on this node."""

from __future__ import annotations

import os
import sys

from sparkops.node import bundle
from sparkops.node.frames import Closed, Link

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from typing import Any, SupportsBytes

PROMPT = "[sparkops-password]"
# How long sudo may take to ask or to start the program, and to end its last words, in seconds.
WAIT = 30.0
DRAIN = 2.0


class Refused(Exception):
    """No executor of that user: sudo did not let us, or it has died. The message says why and what to do."""


class Children:
    """The executors of other users, started when first needed.

    state_dir: the login user's, which root may write too; theirs: any other user's, with its own `~`.
    """

    def __init__(
        self,
        link: Link,
        preamble: bytes | SupportsBytes,
        password: str | None,
        state_dir: str,
        theirs: str,
        check: bool,
    ) -> None:
        self._link = link
        self._preamble = preamble
        self._password = password
        self._opening = {"op": "open", "state_dir": state_dir, "check": check}
        self._theirs = theirs
        self._running: dict[str, Link] = {}
        self._processes: list[subprocess.Popen[bytes]] = []

    def run(self, task: dict[str, Any], index: int) -> dict[str, Any]:
        """Run a task as task["user"]; what it says on the way is passed on. The answer is a task's."""
        user = task["user"]
        try:
            child = self._running.get(user) or self._start(user)
            self._send(child, {"op": "window", "tasks": [{**task, "user": None, "notify": [], "handler": None}]})
            return self._follow(child, index)
        except Refused as refused:
            self._running.pop(user, None)
            return {"state": "failed", "msg": str(refused), "diff": None, "result": {"become": user}, "seconds": 0.0}

    def _follow(self, child: Link, index: int) -> dict[str, Any]:
        answer: dict[str, Any] = {}
        while True:
            message = self._receive(child)
            if message["ev"] == "done":
                return answer
            if message["ev"] == "result":
                answer = {key: message[key] for key in ("state", "msg", "diff", "result", "seconds")}
                continue
            self._link.send(dict(message, task=index))
            if message["ev"] == "need":
                self._relay_pieces(child, message["size"])

    def _relay_pieces(self, child: Link, size: int) -> None:
        had, gone = 0, None
        while had < size:
            piece = self._link.piece()
            try:
                if gone is None:
                    self._send(child, {"op": "piece"}, piece)
            except Refused as refused:
                # What the controller sends is taken in all the same: the next file comes behind it.
                gone = refused
            if not piece:
                break
            had += len(piece)
        if gone:
            raise gone

    def _send(self, child: Link, message: dict[str, Any], blob: bytes = b"") -> None:
        try:
            child.send(message, blob)
        except Closed:
            raise Refused("the executor of the other user has ended early") from None

    def _receive(self, child: Link) -> dict[str, Any]:
        """The child's next frame. Raises Closed when the controller goes away first (the child then ends too)."""
        import select

        while True:
            found = child.poll()
            if found is not None:
                return found[0]
            if child.closed:
                raise Refused("the executor of the other user has ended early")
            # A cable that is pulled makes nothing readable: its silence is looked at all the same.
            ready = select.select([child.source, self._link.source], [], [], 1.0)[0]
            self._link.check()
            if child.source in ready:
                child.fill()

    def _start(self, user: str) -> Link:
        import subprocess

        argv = ["sudo", "-S", "-H", "-p", PROMPT, "-u", user, "--", *bundle.argv(sys.executable, announce=True)]
        try:
            process = subprocess.Popen(
                argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
            )
        except FileNotFoundError:
            raise Refused(f"there is no sudo on this node to become {user} with") from None
        self._processes.append(process)
        assert process.stdin and process.stdout
        child = Link(process.stdout.fileno(), process.stdin.fileno())
        self._enter(process, child, user)
        try:
            child.write(bytes(self._preamble))
        except Closed:
            raise Refused("the executor of the other user has ended early") from None
        self._send(child, self._opening if user == "root" else {**self._opening, "state_dir": self._theirs})
        self._receive(child)
        self._running[user] = child
        return child

    def _enter(self, process: subprocess.Popen[bytes], child: Link, user: str) -> None:
        """Get past sudo. It reads a password only if it needs one, and what it leaves unread would reach the program:
        so nothing is written until it has asked, or the loader has said that it is there."""
        import select
        import time

        assert process.stderr
        errors = process.stderr.fileno()
        said, asked, limit = b"", 0, time.monotonic() + WAIT
        while time.monotonic() < limit:
            ready = select.select([child.source, errors, self._link.source], [], [], 1.0)[0]
            self._link.check()
            if child.source in ready:
                if os.read(child.source, 1) == bundle.HERE:
                    return
                # Its end may be seen before its last words.
                said += _rest(errors)
                break
            if errors not in ready:
                continue
            words = os.read(errors, 4096)
            said += words
            if not words:
                break
            if said.count(PROMPT.encode()) > asked:
                asked += 1
                if asked > 1 or self._password is None or not _answered(child, self._password):
                    break
        _leave(process)
        raise Refused(_why(said.decode("utf-8", "replace"), asked, self._password is not None, user))


def _answered(child: Link, password: str) -> bool:
    try:
        child.write(password.encode() + b"\n")
    except Closed:
        return False
    return True


def _rest(source: int) -> bytes:
    """What is still to be read up to the end of a program's output, for a moment at most."""
    import select
    import time

    found, limit = b"", time.monotonic() + DRAIN
    while (left := limit - time.monotonic()) > 0 and select.select([source], [], [], left)[0]:
        data = os.read(source, 4096)
        if not data:
            break
        found += data
    return found


def _leave(process: subprocess.Popen[bytes]) -> None:
    """End a sudo that waits for a password: by an end of its input, as it is root's and may not be ours to kill."""
    assert process.stdin
    process.stdin.close()
    try:
        process.kill()
    except PermissionError:
        return


def _why(said: str, asked: int, given: bool, user: str) -> str:
    """What to tell of a sudo that did not let us: it asked so many times, a password was given to it or not."""
    text = " ".join(said.replace(PROMPT, "").split())
    if asked and not given:
        return f"sudo asks for a password to become {user}: give one with -K or ansible_become_password"
    if asked > 1 or (asked and "incorrect password" in text):
        return f"sudo did not accept the password for becoming {user}: give the right one (-K, ansible_become_password)"
    return f"sudo did not let us become {user}: {text or 'it did not answer'}"
