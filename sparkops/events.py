"""The typed events that a run emits; reporters, history and reports read these and nothing else.

`document(event)` gives the JSON object of DESIGN's command line chapter: names and units are stable.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

State = Literal["ok", "changed", "failed", "skipped", "unreachable", "rescued", "ignored", "unknown"]
STATES: tuple[State, ...] = (
    "ok",
    "changed",
    "failed",
    "skipped",
    "unreachable",
    "rescued",
    "ignored",
    "unknown",
)


@dataclass(frozen=True)
class RunStart:
    """A playbook starts; `hosts` in the order they were selected."""

    playbook: str
    hosts: list[str]
    check: bool
    forks: int
    event: str = "run_start"


@dataclass(frozen=True)
class HostStart:
    """A host begins a play; `tasks` is how many are ahead of it."""

    host: str
    play: str
    tasks: int
    event: str = "host_start"


@dataclass(frozen=True)
class TaskStart:
    """A host begins a task. For the screen; the JSON reporter leaves it out."""

    host: str
    play: str
    task: str
    module: str
    event: str = "task_start"


@dataclass(frozen=True)
class Task:
    """A task ended on a host. `seconds` are the node's, `diff` a unified diff or None."""

    host: str
    play: str
    task: str
    source: str
    module: str
    state: State
    check: bool
    seconds: float
    msg: str = ""
    diff: str | None = None
    result: dict[str, Any] = field(default_factory=dict)
    event: str = "task"


@dataclass(frozen=True)
class Progress:
    """A long task moved on: `done` of `total` (None: not known) in `unit` (bytes, packages, s)."""

    host: str
    task: str
    done: float
    total: float | None
    unit: str
    msg: str = ""
    event: str = "progress"


@dataclass(frozen=True)
class Output:
    """Lines that a task tells while it goes on (a journal that is followed)."""

    host: str
    task: str
    lines: list[str]
    event: str = "output"


@dataclass(frozen=True)
class Handler:
    """A handler ended on a host; the fields are those of `Task`."""

    host: str
    play: str
    task: str
    source: str
    module: str
    state: State
    check: bool
    seconds: float
    msg: str = ""
    diff: str | None = None
    result: dict[str, Any] = field(default_factory=dict)
    event: str = "handler"


@dataclass(frozen=True)
class Notice:
    """Something a user should know that stops nothing."""

    msg: str
    host: str | None = None
    event: str = "warning"


@dataclass(frozen=True)
class Preflight:
    """What all nodes were found to be before any was touched.

    checks: {check, verdict (pass, warn, fail), found, remedy, hosts}; nodes that agree share one.
    """

    checks: list[dict[str, Any]]
    event: str = "preflight"


@dataclass(frozen=True)
class HostEnd:
    """A host has left a play. `msg` says why when it is `failed` or `unreachable`."""

    host: str
    play: str
    state: Literal["ok", "failed", "unreachable"]
    seconds: float
    msg: str = ""
    hint: str = ""
    event: str = "host_end"


@dataclass(frozen=True)
class Recap:
    """The last event: counts per host and state, and the exit code."""

    hosts: dict[str, dict[str, int]]
    exit_code: int
    event: str = "recap"


Event = RunStart | HostStart | TaskStart | Task | Progress | Output | Handler | Notice | Preflight | HostEnd | Recap
Emit = Callable[[Event], None]


def document(event: Event) -> dict[str, Any]:
    """The event as a JSON object, `event` first."""
    fields = asdict(event)
    return {"event": fields.pop("event"), **fields}
