"""One host's way through one play: windows of tasks, what comes of them, and where to go on after a failure."""

from __future__ import annotations

from collections import ChainMap, deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sparkops.errors import InputError, SparkopsError, TaskFailed
from sparkops.events import Output, Progress, TaskStart
from sparkops.playbook.compile import Compiled, Step, compile_task, display, failing, hidden, notified, resolved
from sparkops.playbook.model import Play
from sparkops.playbook.parse import task_file
from sparkops.playbook.scope import NeedsOthers, NeedsResult, Scope, placed
from sparkops.runner import control, results
from sparkops.runner.batch import Batch
from sparkops.runner.context import Context
from sparkops.runner.handlers import Due
from sparkops.runner.hoststate import FACTS, HostState
from sparkops.runner.program import Item, Program
from sparkops.runner.results import Answer
from sparkops.runner.together import NOTHING, Together, given
from sparkops.runner.window import Window, ends, one_by_one, waits_alone

SETUP = "setup"
# As far down as includes may lead (each, and each block, is two numbers of an item's order).
DEEPEST = 200


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
    failure: SparkopsError | None = None
    # The item that was last carried out; whether there is something that the node has not been told yet.
    last: Item | None = None
    untold: bool = False

    def __post_init__(self) -> None:
        self.name = self.state.host.name
        self.due = Due(self.play.handlers, lambda handler: display(handler.name, self.scope().settled()))
        self.options = self.context.options
        self.program = Program(self.options.selects)
        hosts: list[str] = self.state.magic["ansible_play_hosts_all"]
        before = {host for host in hosts if self.context.states[host].lost} - set(self.batch.hosts)
        self.together = Together(self.name, self.play, self.batch, hosts, frozenset(before))

    def run(self, items: list[Item]) -> None:
        """Go through the items to their end."""
        self.queue.extend(items)
        while self.queue and not self.batch.ended:
            window = self._next_window()
            if window:
                self._run(window)
        if self.untold:
            self._channel(None).sync()
        if self.failure is not None:
            raise self.failure

    def scope(self) -> Scope:
        """The names as they stand now."""
        scope = self.state.scope(self.context.templar, self.play, self.options)
        forced = ChainMap(self.together.present(), scope.forced)  # type: ignore[arg-type]
        return replace(scope, forced=forced, apart=self.together.among_others)

    def sleep(self, seconds: float) -> None:
        """Wait, but not for longer than the run goes on. Raises TaskFailed when it is stopped."""
        if self.state.stop.wait(seconds):
            raise TaskFailed("interrupted", where=self.name)

    def reset_connection(self) -> None:
        """Hang up, once the node has heard all that it was told."""
        if self.untold:
            self._channel(None).sync()
            self.untold = False
        self.state.reset()

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
                if item.mark == "flush" and not item.at and self.together.lockstep and not self._go_on(item):
                    continue
                self.queue.popleft()
                self._pass(item)
                continue
            alone = self.together.meets(item.task)
            if alone:
                if window:
                    break
                if not self._lead(item):
                    continue
                scope = replace(self.scope(), apart=False)
            try:
                compiled = compile_task(item.task, self.play, scope, self.context.files)
            except NeedsResult:
                break
            except NeedsOthers:
                if window:
                    break
                self.together.meet(item.order)
                scope = replace(self.scope(), apart=False)
                continue
            except InputError as error:
                if window:
                    # What is ahead may still give what is missing, or fail.
                    break
                compiled = failing(item.task, self.play, scope, self.context.files, error)
            waits = waits_alone(compiled) or self.options.step
            if window and waits:
                break
            self.queue.popleft()
            if self.options.step and compiled.steps and not self.context.prompt.step(self.name, compiled.name):
                if alone:
                    self.batch.share(item.order, NOTHING)
                continue
            window.append(Ahead(item, compiled, self._splice(item, compiled, scope)))
            if alone or waits or ends(compiled):
                break
            scope = replace(self._after(compiled, scope), apart=self.together.among_others)
        return window

    def _pass(self, item: Item) -> None:
        """Go past a mark."""
        if item.mark == "reraise":
            self._recover(item)
        elif item.mark == "flush":
            self._flush(item)

    def _may_notify(self, window: list[Ahead]) -> bool:
        """Whether handlers may be due behind the window: only then is its end waited for."""
        # What a run before this one left behind, the node says with its first answer.
        unknown = self.state.pending is None and bool(self.play.handlers)
        return unknown or bool(self.due) or any(ahead.compiled.task.notify for ahead in window)

    def _after(self, compiled: Compiled, scope: Scope) -> Scope:
        """The names behind a task of the window: known where the controller knows them, else awaited."""
        task = compiled.task
        if not compiled.local:
            return scope.awaiting({task.register} if task.register else set(), task.module == SETUP)
        return scope.with_results(*results.known(compiled))

    def _splice(self, item: Item, compiled: Compiled, scope: Scope) -> tuple[Item, ...]:
        """The items of the files that an include names, put at the queue's head."""
        found: list[Item] = []
        names = frozenset(name for handler in self.play.handlers for name in (handler.name, *handler.listen))
        for number, step in enumerate(compiled.steps):
            if step.acted is None or step.acted.tasks_file is None:
                continue
            task = compiled.task
            if len(item.order) > DEEPEST:
                raise InputError("files include one another without an end", where=task.position)
            outer = replace(task.outer, params={**task.words.params, **step.local})
            steps = task_file(Path(step.acted.tasks_file), outer, names, scope.render)
            line = self.program.line(steps, item.path, (*item.order, number), item.handler)
            found += line
        self.queue.extendleft(reversed(found))
        return tuple(found)

    # Running it

    def _run(self, window: list[Ahead]) -> None:
        left, failed = deque(window), False
        alone = all(ahead.compiled.local for ahead in window) or one_by_one(window[0].compiled)
        channel = None if alone else self._channel(None)
        self.untold = self.untold and channel is None
        for answers in self._answers(window, channel):
            ahead = left.popleft()
            self.last = ahead.item
            failed = self._ended(ahead, answers)
            if failed:
                self._put_back(left)
                self._recover(ahead.item)
                break
        if channel:
            channel.finish()
        first = window[0]
        if self.together.meets(first.compiled.task):
            self.batch.share(first.item.order, None if failed else given(first.compiled, self.state.variables))

    def _answers(self, window: list[Ahead], channel: Window | None) -> Iterator[list[Answer]]:
        """Each task's answers, judged."""
        first = window[0].compiled
        if one_by_one(first):
            yield list(self._each(first))
            return
        # A handler's notification is forgotten by the node itself, with its last step.
        sent = [results.marked(self.play, ahead.compiled, ahead.item.handler) for ahead in window]
        for ahead, answers in zip(window, channel.execute(sent) if channel else map(results.acted, sent), strict=False):
            pairs = zip(ahead.compiled.steps, answers, strict=False)
            yield [results.judge(ahead.compiled, step, answer) for step, answer in pairs]

    def _each(self, compiled: Compiled) -> Iterator[Answer]:
        for number, step in enumerate(compiled.steps):
            if number:
                self.sleep(compiled.task.loop_control.pause)
            yield self._tried(compiled, step)

    def _tried(self, compiled: Compiled, step: Step) -> Answer:
        """One step's answer: with `until` the last one, which says how often it was tried."""
        one = replace(compiled, steps=(step,))
        with placed(compiled.task.position):
            channel = None if one.local else self._channel(step.delegate)
        until = compiled.task.until is not None
        for attempt in range(1, compiled.retries + 2):
            if attempt > 1:
                self.sleep(compiled.delay)
            answer = next(channel.execute([one]))[0] if channel else results.acted(one)[0]
            if channel:
                channel.finish()
            if until:
                answer = replace(answer, result={**answer.result, "attempts": attempt})
            answer = results.judge(compiled, step, answer)
            try:
                if not until or results.until_met(compiled, step, answer):
                    return answer
            except InputError as error:
                return results.failed(answer, error, changed=False)
        return replace(answer, state="failed", result={**answer.result, "attempts": compiled.retries})

    def _channel(self, name: str | None) -> Window:
        """To the node, or to the delegate of that name."""
        context = self.context
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
        event = results.event(self.name, self.play, compiled, answer, self.options, ahead.item.handler, rescued)
        # As in Ansible, meta is a word to the runner, and no task that is told of and counted.
        if task.module != "meta" or failed:
            self.context.emit(event)
            for warning in results.warnings(event):
                self.context.emit(warning)
        if answer.state == "changed" and task.notify:
            self._notify(compiled, ahead.item.handler)
        if ahead.item.handler and not failed and (compiled.local or one_by_one(compiled)):
            self._tell_node("forget", results.names(compiled))
        if failed:
            where = f"{self.name}: {compiled.name} ({task.position})"
            self.failure = compiled.error or TaskFailed(event.msg, where=where)
            self.together.failed(ahead.item.order)
            about = {"name": compiled.name, "action": task.module}
            self.state.variables |= {
                "ansible_failed_result": results.as_variable(answer),
                "ansible_failed_task": about,
            }
            return True
        for step in compiled.steps:
            if step.acted is not None:
                control.obey(self, ahead.item, step.acted)
        return False

    def _learn(self, compiled: Compiled, answer: Answer) -> None:
        state = self.state
        for step in compiled.steps:
            if step.acted is not None:
                state.included |= step.acted.included
                state.variables |= step.acted.facts
                state.learn_facts({FACTS: step.acted.cached})
        if compiled.task.register:
            state.variables[compiled.task.register] = results.as_variable(answer)
        if not compiled.local:
            state.learn_facts(answer.result)

    def _notify(self, compiled: Compiled, by_handler: bool) -> None:
        names = notified(compiled.task, compiled.scope.settled())
        for name in self.due.unknown(names):
            error = InputError(f"no handler is called {name!r}", where=compiled.task.position)
            raise hidden(error) if compiled.no_log else error
        self.due.notify(names, at_once=by_handler)
        if compiled.task.judged or compiled.local or compiled.delegated:
            self._tell_node("notify", resolved(names, self.play, self.scope()))

    def _tell_node(self, op: str, handlers: list[str]) -> None:
        """Have the node remember, or forget, that handlers are due. It is told at once, and with the next window or at
        the end it has heard it.
        """
        if self.options.check:
            return
        if self.state.session is None and op == "notify" and self.due.for_node():
            self._channel(None)
        if self.state.session is not None:
            self.state.session.send({"op": op, "scope": self.play.scope, "handlers": handlers})
            self.state.session.flush()
            self.untold = True

    def _recover(self, item: Item) -> None:
        if self.program.recover(item, self.queue):
            self.failure = None

    def _put_back(self, left: deque[Ahead]) -> None:
        """Tasks of the window that did not run are ahead again, but for those that an include among them put there."""
        put_in = {item for ahead in left for item in ahead.spliced}
        waiting = [item for item in self.queue if item not in put_in]
        self.queue.clear()
        self.queue.extend([*(ahead.item for ahead in left if ahead.item not in put_in), *waiting])

    def _flush(self, mark: Item) -> None:
        """Put the handlers that are due at the queue's head, in their own order; also those a run before this left."""
        owed = (self.state.pending or {}).pop(self.play.scope, [])
        gone = self.due.unknown(owed)
        if gone:
            self._tell_node("forget", gone)
        self.due.owe(set(owed) - set(gone))
        handlers, further = self.due.take(mark.at)
        items = [Item(handler, handler=True, order=(*mark.order, place)) for place, handler in handlers]
        if further is not None:
            items.append(replace(mark, at=further))
        self.queue.extendleft(reversed(items))

    # Hosts among one another

    def _go_on(self, item: Item) -> list[str]:
        """Meet the others before an item: the hosts that have come to it. [] when the batch has ended meanwhile, or
        when the failure of another is this host's too.
        """
        meeting = self.together.meet(item.order)
        if self.batch.ended:
            return []
        if self.together.must_fail(meeting):
            self._fail_with("another host has failed, which ends this play for all", self.last or item)
            return []
        return meeting.hosts

    def _fail_with(self, why: str, item: Item) -> None:
        self.failure = TaskFailed(why, where=self.name)
        self._recover(item)

    def _lead(self, item: Item) -> bool:
        """Meet the others before a task. False when it is not for this host (now): another has run it for all, or has
        failed at it for all.
        """
        assert item.task is not None
        here = self._go_on(item)
        if not here:
            return False
        once = item.task.words.run_once
        with placed(item.task.position):
            for_all = control.for_all(item.task) if once is None else self.scope().settled().flag(once, "run_once")
        if not for_all or here[0] == self.name:
            return True
        self.queue.popleft()
        shared = self.batch.wait_for(here[0], item.order)
        if shared is None:
            self._fail_with(f"{here[0]} has failed at what it was to do once for all", item)
            return False
        self.state.variables |= shared["variables"]
        self.state.included |= shared["included"]
        return False

    def _begin(self, compiled: Compiled) -> None:
        self.context.emit(TaskStart(self.name, self.play.name, compiled.name, compiled.task.module))

    def _progress(self, compiled: Compiled, message: dict[str, Any]) -> None:
        if message["ev"] == "lines":
            if not compiled.no_log:
                self.context.emit(Output(self.name, compiled.name, message["lines"]))
            return
        msg = "" if compiled.no_log else message.get("msg", "")
        fields = (message["done"], message["total"], message["unit"], msg)
        self.context.emit(Progress(self.name, compiled.name, *fields))
