"""What fails for a moment is tried again, what fails for good is told: for requests to a server.

Runs on the node and on the controller: standard library only.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    T = TypeVar("T")

# In a row: this many bytes between two failures begin a new row.
ATTEMPTS = 5
RENEWED_BY = 1 << 16
LONGEST_WAIT_S = 10.0
# A server that asks for a longer pause is not waited for so long.
LONGEST_PAUSE_S = 60.0


class Trouble(Exception):
    """It can't be had: what happened (`message`), the address or file (`where`), and what to do (`hint`, or "")."""

    def __init__(self, message: str, where: str, hint: str = "") -> None:
        super().__init__(f"{where}: {message}" + (f"; {hint}" if hint else ""))
        self.message = message
        self.where = where
        self.hint = hint


class Missing(Exception):
    """There is no such file."""


class Momentary(Exception):
    """It may work a moment later. pause: seconds that the server asked for."""

    def __init__(self, message: str, pause: float = 0.0) -> None:
        super().__init__(message)
        self.pause = pause


class Patience:
    """Tries again what fails for a moment, ATTEMPTS times in a row, with waits that grow."""

    def __init__(self, url: str, pause: float) -> None:
        self.url = url
        self.pause = pause
        self.failed = 0
        self.came = 0

    def renew(self, count: int) -> None:
        """So many bytes have come."""
        self.came += count
        if self.came >= RENEWED_BY:
            self.failed = 0

    def call(self, get: Callable[[], T]) -> T:
        """What `get` gives. Raises Trouble when it has failed too often, and what else `get` raises."""
        while True:
            try:
                return get()
            except Momentary as error:
                self.again(error)
            except failures() as error:
                self.again(Momentary(words(error)))

    def again(self, error: Momentary) -> None:
        """Wait before the next attempt. Raises Trouble when there is none."""
        import random
        import time

        self.failed += 1
        self.came = 0
        if self.failed >= ATTEMPTS:
            raise Trouble(f"{error} ({ATTEMPTS} times)", self.url, "is the hub reachable?")
        wait = random.uniform(0, min(self.pause * 2**self.failed, LONGEST_WAIT_S))
        time.sleep(max(wait, min(error.pause, LONGEST_PAUSE_S)))


def failures() -> tuple[type[BaseException], ...]:
    """What a connection that fails raises; urllib's errors are OSErrors."""
    from http.client import HTTPException

    return HTTPException, OSError


def words(error: BaseException) -> str:
    """A failure's reason for people."""
    from socket import timeout

    reason = getattr(error, "reason", None) or error
    # Before Python 3.10 a timeout of a socket is another class.
    return (
        "nothing came for a while"
        if isinstance(reason, (TimeoutError, timeout))
        else str(reason) or type(error).__name__
    )
