"""One host's way through one play: windows of tasks, what comes of them, and where to go on after a failure."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sparkops.errors import TaskFailed
from sparkops.events import Emit, Progress, TaskStart
from sparkops.inventory.inventory import Inventory
from sparkops.playbook.compile import Compiled, compile_task
from sparkops.playbook.files import Files
from sparkops.playbook.model import Play, Task
from sparkops.playbook.parse import task_file
from sparkops.playbook.scope import NeedsOthers, NeedsResult, Scope
from sparkops.playbook.template import Templar
from sparkops.runner import control, results
from sparkops.runner.batch import Batch
from sparkops.runner.hoststate import HostState, OpenSession
from sparkops.runner.options import Options
from sparkops.runner.program import Item, Program
from sparkops.runner.results import Answer
from sparkops.runner.window import Window

SETUP = "setup"


@dataclass(frozen=True)
class Context:
    """What all hosts of a run share. state: any host's, for delegation."""

    options: Options
    emit: Emit
    files: Files
    connect: OpenSession
    templar: Templar
    states: Mapping[str, HostState]
    inventory: Inventory
    ask: Callable[[str, str], bool]


@dataclass(frozen=True)
class Ahead:
    """A task of the window: the item it came from, and the items that it put into the queue (an include)."""

    item: Item
    compiled: Compiled
    spliced: tuple[Item, ...] = ()


@dataclass
class Walk:
    """One host in one play. Raises HostUnreachable, LeaseHeld, TaskFailed, InputError."""

    context: Context
    play: Play
    state: HostState
    batch: Batch
    queue: deque[Item] = field(default_factory=deque)
    program: Program = field(default_factory=Program)
    notified: set[str] = field(default_factory=set)
    failure: TaskFailed | None = None

    def __post_init__(self) -> None:
        self.name = self.state.host.name
        self.options = self.context.options
        self.among_others = len(self.batch.hosts) > 1

    def run(self, items: list[Item]) -> None:
        """Go through the items to their end."""
        self.queue.extend(items)
        while self.queue and not self.batch.ended:
            window = self._next_window()
            if window:
                self._run(window)
        if self.failure is not None:
            raise self.failure

    def scope(self) -> Scope:
        """The names as they stand now."""
        scope = self.state.scope(self.context.templar, self.play, self.options)
        return replace(scope, apart=self.among_others)

    # What can be sent now

    def _next_window(self) -> list[Ahead]:
        """The longest run of tasks that can be rendered now; it takes their items from the queue."""
        scope = self.scope()
        window: list[Ahead] = []
        while self.queue and not self.batch.ended:
            item = self.queue[0]
            if item.task is None:
                if window and (item.mark != "flush" or self._may_notify(window)):
                    break
                self.queue.popleft()
                self._pass(item)
                continue
            alone = self._alone(item.task)
            if alone and (window or not self._lead(item, scope)):
                if window:
                    break
                continue
            try:
                compiled = compile_task(item.task, self.play, scope, self.context.files)
            except NeedsResult:
                break
            except NeedsOthers:
                if window:
                    break
                self.batch.meet(self.name, item.order)
                scope = replace(self.scope(), apart=False)
                continue
            waits = _waits(compiled) or self.options.step
            if window and waits:
                break
            self.queue.popleft()
            if self.options.step and compiled.steps and not self.context.ask(self.name, compiled.name):
                continue
            window.append(Ahead(item, compiled, self._splice(item, compiled, scope)))
            if alone or waits or _ends(compiled):
                break
            scope = self._after(compiled, scope)
        return window

    def _pass(self, item: Item) -> None:
        """Go past a mark."""
        if item.mark == "reraise":
            self._recover(item)
        elif item.mark == "flush":
            self._flush()

    def _may_notify(self, window: list[Ahead]) -> bool:
        """Whether handlers may be due behind the window: only then is its end waited for."""
        # What a run before this one left behind, the node says with its first answer.
        unknown = self.state.pending is None and bool(self.play.handlers)
        return unknown or bool(self.notified) or any(ahead.compiled.task.notify for ahead in window)

    def _alone(self, task: Task) -> bool:
        """Whether a task has a window of its own, since hosts meet at it."""
        return self.among_others and (self.play.lockstep or task.words.run_once is not None)

    def _after(self, compiled: Compiled, scope: Scope) -> Scope:
        """The names behind a task of the window: known where the controller knows them, else awaited."""
        task = compiled.task
        if not compiled.local:
            return scope.awaiting({task.register} if task.register else set(), task.module == SETUP)
        known: dict[str, Any] = {}
        for step in compiled.steps:
            if step.acted is not None:
                known |= {**step.acted.included, **step.acted.facts}
        if task.register:
            known[task.register] = results.as_variable(results.joined(compiled, _acted(compiled)))
        return scope.with_results(known)

    def _splice(self, item: Item, compiled: Compiled, scope: Scope) -> tuple[Item, ...]:
        """The items of the files that an include names, put at the queue's head."""
        found: list[Item] = []
        names = frozenset(name for handler in self.play.handlers for name in (handler.name, *handler.listen))
        for number, step in enumerate(compiled.steps):
            if step.acted is None or step.acted.tasks_file is None:
                continue
            task = compiled.task
            outer = replace(task.outer, vars={**task.outer.vars, **task.words.vars, **step.local})
            steps = task_file(Path(step.acted.tasks_file), outer, names, scope.render)
            line = self.program.line(steps, item.path, (*item.order, number))
            found += [one for one in line if one.task is None or self.options.selects(one.task)]
        self.queue.extendleft(reversed(found))
        return tuple(found)

    # Running it

    def _run(self, window: list[Ahead]) -> None:
        left = deque(window)
        channel = None if all(ahead.compiled.local for ahead in window) else self._channel(window[0].compiled)
        for answers in self._answers(window, channel):
            ahead = left.popleft()
            if self._ended(ahead, answers):
                self._put_back(left)
                self._recover(ahead.item)
                break
        if channel:
            channel.finish()
        if self._alone(window[0].compiled.task):
            self.batch.share(window[0].item.order, self._given(window[0].compiled))

    def _answers(self, window: list[Ahead], channel: Window | None) -> Iterator[list[Answer]]:
        """Each task's answers, judged."""
        first = window[0].compiled
        if first.steps and first.task.until is not None:
            yield self._until(first, channel)
            return
        # A handler's notification is forgotten by the node itself, with its last step.
        sent = [results.marked(self.play, ahead.compiled, ahead.item.handler) for ahead in window]
        for ahead, answers in zip(window, channel.execute(sent) if channel else map(_acted, sent), strict=False):
            pairs = zip(ahead.compiled.steps, answers, strict=False)
            yield [results.judge(ahead.compiled, step, answer) for step, answer in pairs]

    def _until(self, compiled: Compiled, channel: Window | None) -> list[Answer]:
        """Try again until the condition holds; the answers say how often each was tried."""
        retries, delay = control.retries(compiled)
        found: list[Answer] = []
        for step in compiled.steps:
            for attempt in range(1, retries + 2):
                if attempt > 1:
                    time.sleep(delay)
                one = replace(compiled, steps=(step,))
                tried = next(channel.execute([one])) if channel else _acted(one)
                if channel:
                    channel.finish()
                answer = results.judge(compiled, step, tried[0])
                met = results.until_met(compiled, step, answer)
                answer = replace(answer, result={**answer.result, "attempts": attempt})
                if met:
                    break
            if not met:
                answer = replace(answer, state="failed", result={**answer.result, "attempts": retries})
            found.append(answer)
        return found

    def _channel(self, compiled: Compiled) -> Window:
        """To the node, or to the delegate."""
        context, name = self.context, compiled.delegate
        if name is not None and name != self.name:
            other = context.states[name] if name in context.states else HostState(context.inventory.host(name))
            address = other.address(other.scope(context.templar, self.play, self.options), self.options)
            session = self.state.delegate(context.connect, address, self.options)
            return Window(session, context.files, lambda _: None, self._begin, self._progress)
        address = self.state.address(self.scope(), self.options)
        session = self.state.open(context.connect, address, self.options)
        return Window(session, context.files, self.state.greeted, self._begin, self._progress)

    # What comes of it

    def _ended(self, ahead: Ahead, answers: list[Answer]) -> bool:
        """Take a task's answers in. True when the host has failed at it."""
        compiled, task = ahead.compiled, ahead.compiled.task
        answer = results.joined(compiled, answers)
        self._learn(compiled, answer)
        failed = answer.state == "failed" and not compiled.ignore
        rescued = failed and self.program.rescues(ahead.item)
        check = self.options.check if compiled.check is None else compiled.check
        event = results.event(self.name, self.play, compiled, answer, check, ahead.item.handler, rescued)
        self.context.emit(event)
        if answer.state == "changed" and task.notify:
            self._notify(compiled)
        if ahead.item.handler and not answers:
            self._tell_node("forget", [task.name, *task.listen])
        if failed:
            self.failure = TaskFailed(event.msg, where=f"{self.name}: {compiled.name} ({task.position})")
            about = {"name": compiled.name, "action": task.module}
            self.state.variables |= {
                "ansible_failed_result": results.as_variable(answer),
                "ansible_failed_task": about,
            }
            return True
        for step in compiled.steps:
            if step.acted is not None:
                control.obey(self, step.acted)
        return False

    def _learn(self, compiled: Compiled, answer: Answer) -> None:
        state = self.state
        for step in compiled.steps:
            if step.acted is not None:
                state.included |= step.acted.included
                state.variables |= step.acted.facts
        if compiled.task.register:
            state.variables[compiled.task.register] = results.as_variable(answer)
        if not compiled.local and compiled.delegate is None:
            state.learn_facts(answer.result)

    def _notify(self, compiled: Compiled) -> None:
        names = [str(compiled.scope.render(name)) for name in compiled.task.notify]
        self.notified.update(names)
        if compiled.task.judged or compiled.local or compiled.delegate:
            self._tell_node("notify", names)

    def _tell_node(self, op: str, handlers: list[str]) -> None:
        """Have the node remember, or forget, that handlers are due; it hears it with the next window."""
        if self.state.session is not None and not self.options.check:
            self.state.session.send({"op": op, "scope": self.play.scope, "handlers": handlers})

    def _recover(self, item: Item) -> None:
        if self.program.recover(item, self.queue):
            self.failure = None

    def _put_back(self, left: deque[Ahead]) -> None:
        """Tasks of the window that did not run are ahead again, but for those that an include among them put there."""
        put_in = {item for ahead in left for item in ahead.spliced}
        waiting = [item for item in self.queue if item not in put_in]
        self.queue.clear()
        self.queue.extend([*(ahead.item for ahead in left if ahead.item not in put_in), *waiting])

    def _flush(self) -> None:
        """Put the handlers that are due at the queue's head, in their own order; also those a run before this left."""
        owed = set((self.state.pending or {}).pop(self.play.scope, []))
        due = self.notified | owed
        self.notified = set()
        names = {name for handler in self.play.handlers for name in (handler.name, *handler.listen)}
        if owed - names:
            self._tell_node("forget", sorted(owed - names))
        known = [handler for handler in self.play.handlers if {handler.name, *handler.listen} & due]
        self.queue.extendleft(Item(handler, handler=True, order=(1 << 30,)) for handler in reversed(known))

    # Hosts among one another

    def _lead(self, item: Item, scope: Scope) -> bool:
        """Meet the others before a task. False when it is not for this host: another has run it for all, or the play
        has ended meanwhile.
        """
        assert item.task is not None
        here = self.batch.meet(self.name, item.order)
        if self.batch.ended:
            return False
        once = item.task.words.run_once
        if once is None or not scope.flag(once, "run_once") or here[0] == self.name:
            return True
        self.queue.popleft()
        given = self.batch.wait_for(here[0], item.order)
        if given is None:
            raise TaskFailed(f"{here[0]} has failed at what it was to do once for all", where=self.name)
        self.state.variables |= given["variables"]
        self.state.included |= given["included"]
        return False

    def _given(self, compiled: Compiled) -> dict[str, Any]:
        """What a task that one host runs for all gives the others: its result, and the variables that it set."""
        acted = [step.acted for step in compiled.steps if step.acted is not None]
        variables = {name: value for one in acted for name, value in one.facts.items()}
        if compiled.task.register:
            variables[compiled.task.register] = self.state.variables.get(compiled.task.register)
        return {"variables": variables, "included": {k: v for one in acted for k, v in one.included.items()}}

    def _begin(self, compiled: Compiled) -> None:
        self.context.emit(TaskStart(self.name, self.play.name, compiled.name, compiled.task.module))

    def _progress(self, compiled: Compiled, message: dict[str, Any]) -> None:
        fields = (message["done"], message["total"], message["unit"], message.get("msg", ""))
        self.context.emit(Progress(self.name, compiled.name, *fields))


def _acted(compiled: Compiled) -> list[Answer]:
    return [results.of_action(step.acted) for step in compiled.steps if step.acted is not None]


def _waits(compiled: Compiled) -> bool:
    """Whether nothing may be sent before or behind it: another host's session, retries, a word to the runner."""
    acted = [step.acted for step in compiled.steps if step.acted is not None]
    if any(one.control or one.pause is not None for one in acted) or compiled.delegate is not None:
        return True
    return bool(compiled.steps) and compiled.task.until is not None


def _ends(compiled: Compiled) -> bool:
    """Whether nothing may be sent behind it: the controller judges how it ended, or knows that it has failed."""
    failed = any(step.acted is not None and step.acted.state == "failed" for step in compiled.steps)
    return bool(compiled.steps) and (compiled.task.judged or (failed and not compiled.ignore))
