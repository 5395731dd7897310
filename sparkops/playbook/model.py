"""Plays and tasks as values, read from YAML and not yet rendered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sparkops.errors import Position


@dataclass(frozen=True)
class Task:
    """One entry of `tasks:` or `handlers:`. `args` are raw: their templates are rendered for each host.

    become and become_user: None inherits the play's. loop: None or the list (or the template of one).
    """

    name: str
    module: str
    args: Mapping[str, Any]
    position: Position
    when: tuple[Any, ...] = ()
    loop: Any = None
    register: str | None = None
    notify: tuple[str, ...] = ()
    listen: tuple[str, ...] = ()
    tags: frozenset[str] = frozenset()
    become: Any = None
    become_user: str | None = None
    vars: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)
    changed_when: tuple[Any, ...] | None = None
    failed_when: tuple[Any, ...] | None = None
    ignore_errors: bool = False
    no_log: bool = False

    @property
    def judged(self) -> bool:
        """Whether the controller decides how it ended, so that nothing may be sent behind it yet."""
        return self.failed_when is not None or (self.changed_when is not None and bool(self.notify))


@dataclass(frozen=True)
class Play:
    """One entry of a playbook. `file` is the playbook's path as it was given."""

    name: str
    hosts: str
    position: Position
    file: str
    vars: Mapping[str, Any] = field(default_factory=dict)
    tasks: tuple[Task, ...] = ()
    handlers: tuple[Task, ...] = ()
    gather_facts: bool = True
    become: Any = False
    become_user: str = "root"
    environment: Mapping[str, Any] = field(default_factory=dict)

    @property
    def scope(self) -> str:
        """The name under which a node remembers this play's pending handlers."""
        return f"{self.file.rpartition('/')[2]}:{self.name}"
