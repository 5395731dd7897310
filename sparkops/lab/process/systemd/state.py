"""A unit's state and its times, with systemd's names."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import datetime

# Active states by sub state; what is not named here is `activating` or `deactivating` by its prefix.
ACTIVE = {"running": "active", "dead": "inactive", "failed": "failed", "auto-restart": "activating"}
INACTIVE = ("inactive", "failed")


@dataclass(frozen=True)
class Moment:
    """A time on both clocks, in microseconds; 0 when it never was."""

    real: int = 0
    monotonic: int = 0

    @classmethod
    def now(cls) -> Moment:
        return cls(time.time_ns() // 1000, time.monotonic_ns() // 1000)

    def __str__(self) -> str:
        """As `systemctl show` and `status` print it, "Mon 2024-01-01 00:00:00 UTC"."""
        moment = datetime.fromtimestamp(self.real / 1e6).astimezone()
        return moment.strftime("%a %Y-%m-%d %H:%M:%S %Z") if self.real else ""


@dataclass
class State:
    """Where a service is in its life, and what became of its main process.

    code: CLD_EXITED 1 or CLD_KILLED 2, 0 before that; status: the exit status or signal. times: by the names of the
    properties, without "Timestamp".
    """

    sub: str = "dead"
    result: str = "success"
    restarts: int = 0
    invocation: str = ""
    main: int = 0
    pid: int = 0
    code: int = 0
    status: int = 0
    times: dict[str, Moment] = field(default_factory=dict)

    @property
    def active(self) -> str:
        """ActiveState."""
        return ACTIVE.get(self.sub) or ("deactivating" if self.sub.startswith("stop") else "activating")

    def enter(self, sub: str) -> None:
        """Go to a sub state, and note when what has changed."""
        before, self.sub = self.active, sub
        now = self.times["StateChange"] = Moment.now()
        if before in INACTIVE and self.active not in INACTIVE:
            self.times["InactiveExit"] = now
        if before not in INACTIVE and self.active in INACTIVE:
            self.times["InactiveEnter"] = now
        if before != "active" and self.active == "active":
            self.times["ActiveEnter"] = now
        if before == "active" and self.active != "active":
            self.times["ActiveExit"] = now

    def started(self, pid: int) -> None:
        """The main process runs."""
        self.main = self.pid = pid
        self.code = self.status = 0
        self.times["ExecMainStart"] = Moment.now()
        self.times.pop("ExecMainExit", None)

    def ended(self, returncode: int) -> None:
        """The main process has ended; `returncode` as Popen has it."""
        self.main = 0
        self.code, self.status = (1, returncode) if returncode >= 0 else (2, -returncode)
        self.times["ExecMainExit"] = Moment.now()
