"""One host's way through one play: windows of tasks, results, handlers."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from typing import Any

from sparkops.errors import InputError, TaskFailed
from sparkops.events import Emit, Progress, TaskStart
from sparkops.playbook.compile import Compiled, compile_task
from sparkops.playbook.files import Files
from sparkops.playbook.model import Play, Task
from sparkops.playbook.scope import NeedsResult, Scope
from sparkops.playbook.template import Templar
from sparkops.runner import results
from sparkops.runner.hoststate import HostState, OpenSession
from sparkops.runner.options import Options
from sparkops.runner.window import Answer, execute

SETUP = "setup"


@dataclass(frozen=True)
class Context:
    """What all hosts of a run share."""

    options: Options
    emit: Emit
    files: Files
    connect: OpenSession
    templar: Templar


@dataclass
class Walk:
    """One host in one play. Raises HostUnreachable, LeaseHeld, TaskFailed, InputError."""

    context: Context
    play: Play
    state: HostState
    notified: set[str] = field(default_factory=set)

    def run(self, tasks: list[Task]) -> None:
        """The tasks, then the handlers that are due (also those that a run before this one left behind)."""
        self._through(deque(tasks), handlers=False)
        left = set(self.state.pending.get(self.play.scope, []))
        due = [task for task in self.play.handlers if {task.name, *task.listen} & (self.notified | left)]
        gone = left - {name for task in self.play.handlers for name in (task.name, *task.listen)}
        if due:
            self._through(deque(due), handlers=True)
        if gone and self.state.session and not self.context.options.check:
            self.state.session.send({"op": "forget", "scope": self.play.scope, "handlers": sorted(gone)})

    def _through(self, queue: deque[Task], handlers: bool) -> None:
        while queue:
            window = self._next_window(queue)
            if handlers:
                window = [self._as_handler(compiled) for compiled in window]
            self._run_window(window, handlers)

    def _next_window(self, queue: deque[Task]) -> list[Compiled]:
        """The longest run of tasks that can be rendered now; it takes them from the queue."""
        scope = self.state.scope(self.context.templar, self.play, self.context.options)
        window: list[Compiled] = []
        while queue:
            try:
                compiled = compile_task(queue[0], self.play, scope, self.context.files)
            except NeedsResult:
                break
            task = queue.popleft()
            window.append(compiled)
            if not compiled.steps:
                if task.register:
                    scope = scope.with_values({task.register: results.as_variable(results.skipped(compiled))})
                continue
            if task.register:
                scope.pending.add(task.register)
            scope.facts_pending = scope.facts_pending or task.module == SETUP
            if task.judged:
                break
        return window

    def _as_handler(self, compiled: Compiled) -> Compiled:
        """Marked so that the node forgets the notification once it has run."""
        task = compiled.task
        mark = {"scope": self.play.scope, "handler": [task.name, *task.listen]}
        steps = tuple(
            replace(step, frame={**step.frame, **mark}) if at == len(compiled.steps) - 1 else step
            for at, step in enumerate(compiled.steps)
        )
        return replace(compiled, steps=steps)

    def _run_window(self, window: list[Compiled], handlers: bool) -> None:
        session = self._session() if any(compiled.steps for compiled in window) else None
        if session is None:
            for compiled in window:
                self._ended(compiled, [], handlers)
            return
        for compiled, answers in execute(
            session, window, self.context.files, self.state.greeted, self._begin, self._progress
        ):
            self._ended(compiled, answers, handlers)

    def _session(self) -> Any:
        if self.state.session is None:
            address = self.state.address(self.context.templar, self.play, self.context.options)
            self.state.open(self.context.connect, address, self.context.options)
        return self.state.session

    def _ended(self, compiled: Compiled, answers: list[Answer], handlers: bool) -> None:
        task = compiled.task
        scope = self.state.scope(self.context.templar, self.play, self.context.options)
        answer = results.joined(compiled, answers) if answers else results.skipped(compiled)
        judged = results.judge(compiled, answer, scope)
        if task.register:
            self.state.registered[task.register] = results.as_variable(judged)
        self.state.learn_facts(judged.result)
        event = results.event(self.state.host.name, self.play, compiled, judged, self.context.options.check, handlers)
        self.context.emit(event)
        if judged.state == "changed" and task.notify:
            self.notified.update(task.notify)
            if task.judged and self.state.session and not self.context.options.check:
                self.state.session.send({"op": "notify", "scope": self.play.scope, "handlers": list(task.notify)})
        if handlers and not answers and self.state.session and not self.context.options.check:
            self.state.session.send({"op": "forget", "scope": self.play.scope, "handlers": [task.name, *task.listen]})
        if judged.state == "failed" and not task.ignore_errors:
            raise TaskFailed(event.msg, where=f"{self.state.host.name}: {compiled.name} ({task.position})")

    def _begin(self, compiled: Compiled) -> None:
        self.context.emit(TaskStart(self.state.host.name, self.play.name, compiled.name, compiled.task.module))

    def _progress(self, compiled: Compiled, message: dict[str, Any]) -> None:
        self.context.emit(
            Progress(
                self.state.host.name,
                compiled.name,
                message["done"],
                message["total"],
                message["unit"],
                message.get("msg", ""),
            )
        )


def gather(play: Play) -> Task:
    """The task that `gather_facts` stands for."""
    return Task(name="Gathering Facts", module=SETUP, args={}, position=play.position, tags=frozenset({"always"}))


def foresee(play: Play, tasks: list[Task], scope: Scope, files: Files) -> list[InputError]:
    """What is wrong with the tasks that can be rendered before anything has run on the host."""
    errors: list[InputError] = []
    scope.pending.update(task.register for task in (*tasks, *play.handlers) if task.register)
    scope.facts_pending = True
    for task in (*tasks, *play.handlers):
        try:
            compile_task(task, play, scope, files)
        except NeedsResult:
            continue
        except InputError as error:
            errors.append(error)
    return errors
