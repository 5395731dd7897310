"""One host among the others of its batch: where it meets them, and what it then knows of them."""

from __future__ import annotations

from typing import Any

from sparkops.playbook.compile import Compiled
from sparkops.playbook.model import Play, Task
from sparkops.runner import control
from sparkops.runner.batch import Batch, Meeting
from sparkops.runner.hostvars import present

Order = tuple[int, ...]
# What a task that was left out gives the others.
NOTHING: dict[str, Any] = {"variables": {}, "included": {}}


class Together:
    """gone: hosts of the play that have failed, before this batch or as of the last meeting."""

    def __init__(self, name: str, play: Play, batch: Batch, play_hosts: list[str], gone: frozenset[str]) -> None:
        self.among_others = len(batch.hosts) > 1
        self.lockstep = self.among_others and play.lockstep
        self._name = name
        self._fatal = play.any_errors_fatal
        self._batch = batch
        self._play_hosts = play_hosts
        self._gone = gone
        self._seen: set[Order] = set()

    def meets(self, task: Task) -> bool:
        """Whether hosts meet before a task, which then has a window of its own."""
        return self.lockstep or (self.among_others and control.for_all(task))

    def meet(self, order: Order) -> Meeting:
        """Wait for the others."""
        meeting = self._batch.meet(self._name, order)
        self._gone |= meeting.failed
        return meeting

    def must_fail(self, meeting: Meeting) -> bool:
        """Whether there was a failure that is one of all hosts, which this one has not heard of."""
        news = meeting.fatal - self._seen
        self._seen |= news
        return bool(news)

    def failed(self, order: Order) -> None:
        """This host has failed at a place; with any_errors_fatal all have."""
        if self._fatal:
            self._seen.add(order)
            self._batch.fail_all(order)

    def present(self) -> dict[str, Any]:
        """The magic variables that say which hosts are still there."""
        return present(self._play_hosts, self._batch, self._gone)


def given(compiled: Compiled, variables: dict[str, Any]) -> dict[str, Any]:
    """What a task that one host runs for all gives the others: its result, and the variables that it set."""
    acted = [step.acted for step in compiled.steps if step.acted is not None]
    facts = {name: value for one in acted for name, value in one.facts.items()}
    if compiled.task.register:
        facts[compiled.task.register] = variables.get(compiled.task.register)
    return {"variables": facts, "included": {k: v for one in acted for k, v in one.included.items()}}
