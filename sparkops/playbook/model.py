"""Plays, blocks and tasks as values, read from YAML and not yet rendered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sparkops.errors import Position


@dataclass(frozen=True)
class Words:
    """What a task has of its own and from the blocks, imports and play around it.

    Values are as written (templates may stand anywhere); None: nobody said anything. `environment` is a list of
    mappings, the last winning. `when`: all must hold, the outermost asked first. params: the vars of the include_tasks
    around it, which beat what has been set or registered.
    """

    when: tuple[Any, ...] = ()
    vars: Mapping[str, Any] = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)
    tags: frozenset[str] = frozenset()
    environment: tuple[Any, ...] = ()
    become: Any = None
    become_user: Any = None
    check_mode: Any = None
    delegate_to: Any = None
    ignore_errors: Any = None
    no_log: Any = None
    run_once: Any = None
    timeout: Any = None


@dataclass(frozen=True)
class LoopControl:
    """How a loop names things; `label` is a template for people, `pause` seconds between items."""

    loop_var: str = "item"
    index_var: str | None = None
    label: Any = None
    pause: float = 0


@dataclass(frozen=True)
class Task:
    """One entry of `tasks:` or `handlers:`. `args` are raw: their templates are rendered for each host.

    loop: None or the list (or the template of one); with_lookup: the lookup whose result it is (with_items: items).
    until: () is until it does not fail; retries and delay (seconds) belong to it. file: where it was read from, for
    what it names. outer: the words around it, without its own: what the tasks of an include inherit.
    """

    name: str
    module: str
    args: Mapping[str, Any]
    position: Position
    file: str
    words: Words = Words()
    loop: Any = None
    with_lookup: str | None = None
    loop_control: LoopControl = LoopControl()
    register: str | None = None
    notify: tuple[str, ...] = ()
    listen: tuple[str, ...] = ()
    changed_when: tuple[Any, ...] | None = None
    failed_when: tuple[Any, ...] | None = None
    until: tuple[Any, ...] | None = None
    retries: Any = 3
    delay: Any = 5
    outer: Words = Words()

    @property
    def judged(self) -> bool:
        """Whether the controller decides how it ended, so that nothing may be sent behind it yet."""
        if self.failed_when is not None or self.until is not None:
            return True
        return self.changed_when is not None and bool(self.notify)


@dataclass(frozen=True)
class Block:
    """Tasks that belong together. Their words have been handed down to them already."""

    position: Position
    block: tuple[Step, ...]
    rescue: tuple[Step, ...] = ()
    always: tuple[Step, ...] = ()


Step = Task | Block


@dataclass(frozen=True)
class Play:
    """One entry of a playbook. `file` is the playbook's path as it was given; `sections` are pre_tasks, tasks and
    post_tasks: handlers run after each. serial: batch sizes as written, () for one batch of all.
    """

    name: str
    hosts: str
    position: Position
    file: str
    vars: Mapping[str, Any] = field(default_factory=dict)
    vars_files: tuple[Any, ...] = ()
    sections: tuple[tuple[Step, ...], ...] = ()
    handlers: tuple[Task, ...] = ()
    gather_facts: Any = True
    words: Words = Words()
    serial: tuple[Any, ...] = ()
    max_fail_percentage: float | None = None
    any_errors_fatal: bool = False

    @property
    def scope(self) -> str:
        """The name under which a node remembers this play's pending handlers."""
        return f"{self.file.rpartition('/')[2]}:{self.name}"

    @property
    def lockstep(self) -> bool:
        """Whether hosts must wait for one another after each task, since one's failure may end all."""
        return self.any_errors_fatal or self.max_fail_percentage is not None


def tasks_in(steps: tuple[Step, ...]) -> list[Task]:
    """All tasks of a list, those in blocks too, in the order of the file."""
    found: list[Task] = []
    for step in steps:
        if isinstance(step, Task):
            found.append(step)
        else:
            found += tasks_in((*step.block, *step.rescue, *step.always))
    return found
