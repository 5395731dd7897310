"""What sparkops remembers on a node between runs: the lease and the handlers that are still to run."""

from __future__ import annotations

import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


# How long, in seconds, a run waits for the end of its own earlier connection.
OWN_WAIT = 10.0


class Held(Exception):
    """Another run holds the lease; `by` says whose it is."""

    def __init__(self, by: dict[str, Any]) -> None:
        super().__init__(str(by))
        self.by = by


class State:
    """The folder state/ of the login user. Reading it makes nothing; only a run that changes things writes."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._lease = -1

    def take_lease(self, about: dict[str, Any]) -> None:
        """Hold the node for this process's life. Raises Held.

        The kernel drops the lock with the process, so a run that was killed leaves none behind.
        """
        import fcntl

        from sparkops.node.jobs import make_folder

        make_folder(self.folder)
        self._lease = os.open(os.path.join(self.folder, "lease"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        waited = 0.0
        while True:
            try:
                fcntl.flock(self._lease, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                by = self._holder()
                # The same run, over a connection that it has just closed: that executor is about to end.
                if by != about or waited > OWN_WAIT:
                    raise Held(by) from None
            import time

            time.sleep(0.05)
            waited += 0.05
        said = json.dumps(about).encode()
        # To cut it short first costs a journal's entry each time.
        if os.pwrite(self._lease, said, 0) < os.fstat(self._lease).st_size:
            os.ftruncate(self._lease, len(said))

    def give_back(self) -> None:
        """Hold it no longer."""
        if self._lease != -1:
            os.close(self._lease)
            self._lease = -1

    def _holder(self) -> dict[str, Any]:
        try:
            by = json.loads(os.pread(self._lease, 4096, 0) or b"{}")
        except ValueError:
            return {}
        return by if isinstance(by, dict) else {}

    def pending(self) -> dict[str, list[str]]:
        """Handlers that were notified and have not run, by scope (playbook and play)."""
        try:
            with open(os.path.join(self.folder, "pending"), encoding="utf-8") as file:
                found: dict[str, list[str]] = json.load(file)
                return found
        except (OSError, ValueError):
            return {}

    def notify(self, scope: str, handlers: list[str]) -> None:
        """Remember handlers until they have run."""
        pending = self.pending()
        names = pending.setdefault(scope, [])
        names += [name for name in handlers if name not in names]
        self._write(pending)

    def forget(self, scope: str, handlers: list[str]) -> None:
        """Handlers that have run, or that no longer exist."""
        pending = self.pending()
        left = [name for name in pending.pop(scope, []) if name not in handlers]
        self._write({**pending, scope: left} if left else pending)

    def _write(self, pending: dict[str, list[str]]) -> None:
        from sparkops.node.jobs import make_folder

        make_folder(self.folder)
        path = os.path.join(self.folder, "pending")
        if not pending:
            if os.path.exists(path):
                os.unlink(path)
            return
        with open(path + ".new", "w", encoding="utf-8") as file:
            json.dump(pending, file)
            file.flush()
            os.fsync(file.fileno())
        os.rename(path + ".new", path)
