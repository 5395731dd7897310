"""Every error that a user can meet: what happened, where, and what to do about it.

Exit codes are those of the README; `cli` prints errors, nothing else does.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Position:
    """A place in a file the user wrote; `line` and `column` count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class SparkopsError(Exception):
    """What happened (`message`), where (`where`), what to do next (`hint`)."""

    exit_code = 2

    def __init__(self, message: str, *, where: Position | str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message


class InputError(SparkopsError):
    """The user's input (a file, a pattern, an option) is wrong."""


class InputErrors(InputError):
    """Several input errors that were found together."""

    def __init__(self, errors: list[SparkopsError]) -> None:
        super().__init__(f"{len(errors)} errors")
        self.errors = errors


class UndefinedName(InputError):
    """A template uses a name that nothing defines."""


class HostUnreachable(SparkopsError):
    """No session with a host: the network, the login or the host key."""

    exit_code = 4


class HostKeyError(HostUnreachable):
    """A host's key is unknown or is not the recorded one."""


class ConnectionLost(HostUnreachable):
    """A session that was open has ended early."""


class TaskFailed(SparkopsError):
    """A task could not be carried out on a node."""

    exit_code = 1


class LeaseHeld(SparkopsError):
    """Another run is at work on a node."""

    exit_code = 5


class LabError(SparkopsError):
    """The lab could not do what it was asked."""

    exit_code = 1
