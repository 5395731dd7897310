"""What an action (a module that runs on the controller) is made of: `Acted`, how it ended, and what it asks for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


class Condition(str):
    """An argument that is an expression: the action evaluates it itself."""


@dataclass(frozen=True)
class Acted:
    """How an action ended.

    state: ok, failed or skipped. facts: variables for this host, as set_fact sets them; cached: those of them that are
    also facts as they are gathered. included: variables as
    include_vars sets them. control: what the runner is asked to do (flush_handlers, end_host, end_play, end_batch,
    clear_facts, reset_connection). tasks_file: the file whose tasks come next. pause: seconds to
    wait; prompt: what to ask for first.
    """

    state: str = "ok"
    msg: str = ""
    result: dict[str, Any] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    cached: dict[str, Any] = field(default_factory=dict)
    included: dict[str, Any] = field(default_factory=dict)
    control: str | None = None
    tasks_file: str | None = None
    pause: float | None = None
    prompt: str | None = None
