"""The real `Node`: commands, detached jobs and files from the controller, for one user of the machine it runs on."""

from __future__ import annotations

import os

from sparkops.node.api import Completed, Failure, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from sparkops.node.frames import Link

SBIN = "/usr/local/sbin:/usr/sbin:/sbin"
PROGRESS_EVERY = 0.25


class LocalNode(Node):
    """A node seen from a process on it. Without a `link` (in a detached job) nothing is told and nobody can go away."""

    def __init__(self, link: Link | None, state_dir: str, check: bool, env: dict[str, str], task: int = 0) -> None:
        self.link = link
        self.state_dir = state_dir
        self.check = check
        self.env = env
        self.home = os.path.expanduser("~")
        self._task = task
        self._told = 0.0
        # Bytes of a file that the controller still has to send.
        self._owed = 0

    def run(
        self,
        argv: list[str],
        *,
        stdin: str = "",
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout: float | None = None,
        must: bool = False,
        each: Callable[[list[str]], None] | None = None,
    ) -> Completed:
        """See Node."""
        from sparkops.node import process

        done = process.run(
            [self.which(argv[0]) or argv[0], *argv[1:]] if os.sep not in argv[0] else argv,
            stdin=stdin,
            cwd=cwd,
            env={**os.environ, **self.env, **(env or {})},
            timeout=timeout,
            check=self._still_there,
            wake=self.link.source if self.link else None,
            each=each,
        )
        if must and done.rc != 0:
            tail = (done.err.strip() or done.out.strip()).splitlines()[-12:]
            raise Failure(
                "\n".join([f"{' '.join(argv[:4])} ended with status {done.rc}", *tail]),
                rc=done.rc,
                stdout=done.out,
                stderr=done.err,
            )
        return done

    def which(self, program: str) -> str | None:
        """See Node."""
        path = self.env.get("PATH") or os.environ.get("PATH", os.defpath)
        for folder in f"{path}:{SBIN}".split(":"):
            full = os.path.join(folder or ".", program)
            if os.path.isfile(full) and os.access(full, os.X_OK):
                return full
        return None

    def progress(self, done: float, total: float | None, unit: str, msg: str = "") -> None:
        """See Node."""
        import time

        now = time.monotonic()
        if self.link and (now - self._told >= PROGRESS_EVERY or done == total):
            self._told = now
            self.link.send(
                {"ev": "progress", "task": self._task, "done": done, "total": total, "unit": unit, "msg": msg}
            )

    def tell(self, lines: list[str]) -> None:
        """See Node."""
        if self.link:
            self.link.send({"ev": "lines", "task": self._task, "lines": lines})

    def pause(self, seconds: float) -> None:
        """See Node."""
        import select
        import time

        limit = time.monotonic() + seconds
        while (left := limit - time.monotonic()) > 0:
            if self.link is None:
                time.sleep(left)
            else:
                select.select([self.link.source], [], [], min(left, 1.0))
                # It also reads a frame that waits for its turn, which would keep the descriptor readable.
                self.link.check()

    def content(self, digest: str, size: int) -> Iterator[bytes]:
        """See Node."""
        import hashlib

        if self.link is None:
            raise Failure("a detached job cannot fetch files from the controller")
        self.link.send({"ev": "need", "task": self._task, "digest": digest, "size": size})
        self._owed = size
        seen = hashlib.sha256()
        while self._owed:
            piece = self._piece(self.link)
            if not piece:
                raise Failure("the file was removed or cut short on the controller; run again", digest=digest)
            seen.update(piece)
            self.progress(size - self._owed, size, "bytes")
            yield piece
        if seen.hexdigest() != digest:
            raise Failure("the file changed on the controller while it was sent; run again")

    def contents(self, files: list[tuple[str, int]]) -> Iterator[bytes]:
        """See Node. Who writes them compares them."""
        if self.link is None:
            yield from super().contents(files)
            return
        size = self._owed = sum(size for _, size in files)
        if not size:
            return
        self.link.send({"ev": "need", "task": self._task, "files": files, "size": size})
        while self._owed:
            piece = self._piece(self.link)
            if not piece:
                raise Failure("a file was removed or cut short on the controller; run again")
            self.progress(size - self._owed, size, "bytes")
            yield piece

    def settle(self) -> None:
        """Take in what is left of a file that the task stopped reading: the next one's pieces come behind it."""
        while self.link and self._owed:
            self._piece(self.link)

    def _piece(self, link: Link) -> bytes:
        piece = link.piece()
        self._owed = self._owed - len(piece) if piece else 0
        return piece

    def job(
        self,
        key: str,
        work: Callable[[Node], dict[str, Any]],
        watch: Callable[[Node], None] | None = None,
    ) -> dict[str, Any]:
        """See Node."""
        from sparkops.node.jobs import Job

        job = Job(self.state_dir, key)
        child = 0
        if not job.running():
            job.clear()
            child = job.start(work, LocalNode(None, self.state_dir, self.check, self.env))
        while (ended := job.result()) is None:
            if (child and os.waitpid(child, os.WNOHANG)[0]) or (not child and not job.running()):
                ended = job.result()
                child = 0
                break
            if watch:
                watch(self)
            self.pause(0.1)
        if child:
            os.waitpid(child, 0)
        if ended is None:
            raise Failure(f"the detached job {key} was killed; its output is in {job.log} on the node; run again")
        if "failure" in ended:
            raise Failure(ended["failure"], log=job.log, **ended["result"])
        job.clear()
        value: dict[str, Any] = ended["value"]
        return value

    def start_job(self, key: str, work: Callable[[Node], dict[str, Any]]) -> None:
        """See Node."""
        from sparkops.node.jobs import Job

        job = Job(self.state_dir, key)
        if not job.running():
            job.clear()
            job.start(work, LocalNode(None, self.state_dir, self.check, self.env), keep=False)

    def _still_there(self) -> None:
        if self.link:
            self.link.check()
