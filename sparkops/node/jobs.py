"""Detached work on a node: it goes on by itself when the controller is gone, and the next run joins it.

A job lives in state/jobs/<key>/: `pid` (pid and kernel start time), `log`, and `result` once it has ended.
"""

from __future__ import annotations

import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from sparkops.node.api import Node


ENDED = ".ended-"


def make_folder(path: str) -> None:
    """mkdir -p that gives what it makes to the owner of the folder above: root works in a user's state/ too."""
    if os.path.isdir(path):
        return
    above = os.path.dirname(path)
    make_folder(above)
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        return
    if os.geteuid() == 0:
        owner = os.stat(above)
        os.chown(path, owner.st_uid, owner.st_gid)


def start_time(pid: int) -> str | None:
    """The kernel's start time of a live process, which tells it from a later one with the same pid; else None."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]


class Job:
    """One key's job on this node."""

    def __init__(self, state_dir: str, key: str) -> None:
        self.folder = os.path.join(state_dir, "jobs", key)
        self.log = os.path.join(self.folder, "log")

    def running(self) -> bool:
        """Whether its process is alive."""
        try:
            with open(os.path.join(self.folder, "pid"), encoding="utf-8") as file:
                pid, started = file.read().split()
        except (OSError, ValueError):
            return False
        return start_time(int(pid)) == started

    def result(self) -> dict[str, Any] | None:
        """{"value": ...} or {"failure": msg, "result": ...} once it has ended."""
        try:
            with open(os.path.join(self.folder, "result"), encoding="utf-8") as file:
                ended: dict[str, Any] = json.load(file)
                return ended
        except (OSError, ValueError):
            return None

    def clear(self) -> None:
        """Forget a job that has ended. What can't be removed (a file still open on NFS) is out of the way at least."""
        import shutil

        try:
            os.rename(self.folder, f"{self.folder}{ENDED}{os.urandom(6).hex()}")
        except FileNotFoundError:
            pass
        # Also those that a run which was killed just then has left.
        jobs, key = os.path.split(self.folder)
        for name in os.listdir(jobs) if os.path.isdir(jobs) else []:
            if name.startswith(key + ENDED):
                shutil.rmtree(os.path.join(jobs, name), ignore_errors=True)

    def start(self, work: Callable[[Node], dict[str, Any]], node: Node, keep: bool = True) -> int:
        """Fork the work into a session of its own; returns its pid. keep: somebody will read its result."""
        make_folder(self.folder)
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                self._detach()
                # Its first act, so that there is no moment at which a live job has no record.
                with open(os.path.join(self.folder, "pid"), "w", encoding="utf-8") as file:
                    file.write(f"{os.getpid()} {start_time(os.getpid())}")
                ended = _outcome(work, node)
                if keep:
                    self._finish(ended)
                else:
                    self.clear()
                status = 0
            finally:
                os._exit(status)
        return pid

    def _detach(self) -> None:
        os.setsid()
        null = os.open(os.devnull, os.O_RDONLY)
        log = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(null, 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        # Whatever else is open (the channel to the controller among it) would keep the SSH session alive.
        os.closerange(3, 256)

    def _finish(self, ended: dict[str, Any]) -> None:
        beside = os.path.join(self.folder, "result.new")
        with open(beside, "w", encoding="utf-8") as file:
            json.dump(ended, file)
            file.flush()
            os.fsync(file.fileno())
        os.rename(beside, os.path.join(self.folder, "result"))


def _outcome(work: Callable[[Node], dict[str, Any]], node: Node) -> dict[str, Any]:
    from sparkops.node.api import Failure

    try:
        return {"value": work(node)}
    except Failure as failure:
        return {"failure": failure.msg, "result": failure.result}
    except OSError as error:
        return {"failure": str(error), "result": {}}
    except Exception as error:
        import traceback

        traceback.print_exc()
        return {"failure": f"{type(error).__name__}: {error}", "result": {"traceback": traceback.format_exc()}}
