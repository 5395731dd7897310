"""Runs plays over hosts: each host on a thread of its own, none waiting for another inside a play."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from sparkops.errors import InputError, InputErrors, SparkopsError, TaskFailed
from sparkops.events import Emit, HostEnd, HostStart, Notice, RunStart
from sparkops.inventory.inventory import Inventory, NoMatch
from sparkops.playbook.files import Files
from sparkops.playbook.model import Play, Step, tasks_in
from sparkops.playbook.scope import Scope
from sparkops.playbook.template import Templar
from sparkops.project.near import did_you_mean
from sparkops.runner.batch import Batch, batches
from sparkops.runner.context import Context
from sparkops.runner.foresight import Ahead, foresee, gather, gathers, syntax_errors, vars_files
from sparkops.runner.hoststate import HostState, OpenSession
from sparkops.runner.hostvars import HostVars, magic
from sparkops.runner.options import Options
from sparkops.runner.pings import Pings
from sparkops.runner.program import Item, Program
from sparkops.runner.prompt import Prompt
from sparkops.runner.recap import Tally
from sparkops.runner.walk import Walk
from sparkops.transport.address import Address


@dataclass(frozen=True)
class Target:
    """The hosts that a run may touch: `pattern` within `limit`. `named`: the user named them on the command line."""

    inventory: Inventory
    pattern: str = "all"
    limit: str | None = None
    named: bool = False

    def names(self) -> list[str]:
        """The hosts. Raises NoMatch when the user named some and there are none."""
        try:
            return [host.name for host in self.inventory.select(self.pattern, self.limit)]
        except NoMatch:
            if self.named:
                raise
            return []

    def unmatched(self) -> list[str]:
        """Parts of what was named that match nothing, though others do."""
        return [part for text in (self.pattern, self.limit) if text for part in self.inventory.unmatched(text)]


class Run:
    """One run of a playbook over the hosts of `target` that its plays name.

    folders: where lookups and includes of templates look, the playbook's own first. begin: told of the first hosts that
    `connect` will be asked for, so that their sshd comes up meanwhile.
    """

    def __init__(
        self,
        plays: Sequence[Play],
        target: Target,
        options: Options,
        emit: Emit,
        files: Files,
        connect: OpenSession,
        folders: Sequence[Path] = (),
        begin: Callable[[Sequence[Address]], None] | None = None,
    ) -> None:
        self.options = options
        self._target = target
        self._inventory = target.inventory
        self._emit = emit
        self._files = files
        self._connect = connect
        self._templar = Templar(folders)
        chosen = set(target.names())
        named = [replace(play, name=self._name(play)) for play in plays]
        self._plays = [(play, self._hosts(play, chosen)) for play in named]
        # The play after which a host has nothing left to do.
        self._last = {name: play for play, hosts in self._plays for name in hosts}
        self._stop = threading.Event()
        self._prompt = Prompt(self._stop)
        names = dict.fromkeys(name for _, hosts in self._plays for name in hosts)
        self._states = {name: HostState(target.inventory.host(name), stop=self._stop) for name in names}
        self._hostvars = HostVars(target.inventory, self._states)
        self.tally = Tally(emit, names)
        self._started = False
        self._begin = begin
        self._sure: dict[str, Address] = {}

    def _name(self, play: Play) -> str:
        """A play's name, which its vars may be in."""
        try:
            return str(self._templar.render(play.name, {**play.vars, **self.options.extra}))
        except InputError:
            return play.name

    def _hosts(self, play: Play, chosen: set[str]) -> list[str]:
        pattern = self._templar.render(play.hosts, self.options.extra)
        try:
            return [host.name for host in self._inventory.select(str(pattern)) if host.name in chosen]
        except NoMatch:
            return []

    def plays(self) -> list[tuple[Play, list[str]]]:
        """The plays, each with its hosts."""
        return self._plays

    def check_syntax(self) -> None:
        """What is wrong with the templates of the plays, whatever the hosts. Raises InputErrors."""
        tasks = [task for play, _ in self._plays for task in (*tasks_in(self._steps(play)), *play.handlers)]
        errors = syntax_errors(tasks, self._templar)
        if errors:
            raise InputErrors(list(errors))

    def check(self) -> None:
        """Everything that can be known to be wrong before the first connection. Raises InputErrors."""
        found: dict[str, SparkopsError] = {}
        if not any(self._starts_in(play) for play, _ in self._plays):
            names = [task.name for play, _ in self._plays for task in tasks_in(self._steps(play))]
            hint = did_you_mean(str(self.options.start_at), names)
            raise InputError(f"no task is called {self.options.start_at!r}", hint=hint)
        ahead: dict[str, Ahead] = defaultdict(Ahead)
        for play, hosts in self._plays:
            batches(hosts, self._serial(play), play.position)
            batch = Batch(play, hosts, 1)
            tasks = [task for task in tasks_in(self._steps(play)) if self.options.selects(task)]
            for name in hosts:
                try:
                    scope = self._enter(play, self._states[name], batch, hosts)
                    errors = foresee(play, [*tasks, *play.handlers], scope, self._files, ahead[name])
                    if play is self._plays[0][0] and (ahead[name].reaches or gathers(play, self.options)):
                        with suppress(InputError):
                            self._sure[name] = self._states[name].address(scope, self.options)
                except InputError as wrong:
                    errors = [wrong]
                for error in errors:
                    found.setdefault(str(error), error)
        if found:
            raise InputErrors(list(found.values()))

    def execute(self) -> int:
        """Run, and give the exit code. The recap is emitted in any case; Ctrl-C hangs up on all nodes and gives 130."""
        file = self._plays[0][0].file if self._plays else ""
        self.tally(RunStart(file, list(self._states), self.options.check, self.options.forks))
        for part in self._target.unmatched():
            self.tally(Notice(f"nothing matches {part!r}"))
        over = threading.Event()
        threading.Thread(target=Pings(self._states.values()).go_on, args=(over,), daemon=True).start()
        try:
            for play, hosts in self._plays:
                if not self._play(play, hosts):
                    break
                self._started = self._started or self._starts_in(play)
        except KeyboardInterrupt:
            self._stop.set()
            self.tally.codes.add(130)
        finally:
            over.set()
            for state in self._states.values():
                state.close()
        code = self.tally.exit_code()
        self._emit(self.tally.recap(code))
        return code

    def _starts_in(self, play: Play) -> bool:
        names = [task.name for task in tasks_in(self._steps(play))]
        return self.options.start_at is None or any(fnmatchcase(name, self.options.start_at) for name in names)

    def _steps(self, play: Play) -> tuple[Step, ...]:
        return tuple(step for section in play.sections for step in section)

    def _serial(self, play: Play) -> list[Any]:
        sizes = [self._templar.render(size, {**play.vars, **self.options.extra}) for size in play.serial]
        return [one for size in sizes for one in (size if isinstance(size, list) else [size])]

    def _enter(self, play: Play, state: HostState, batch: Batch, hosts: list[str]) -> Scope:
        """Give a host the play's variables; its scope."""
        state.magic = magic(play, batch, hosts, self.options, self._hostvars)
        state.files = {}
        scope = state.scope(self._templar, play, self.options)
        vars_files(play, scope, self._files, state.files)
        return scope

    def _play(self, play: Play, hosts: list[str]) -> bool:
        """Run a play, batch by batch. False when the run is over."""
        if not hosts:
            self.tally(Notice(f"play {play.name!r}: no hosts matched {play.hosts!r}, skipped"))
            return True
        serial = self._serial(play)
        # Not as in Ansible (docs/adr/008): who has failed in a play before leaves no hole, so that a canary is one.
        places = [name for name in hosts if not (serial and self._states[name].lost)]
        failed = len(hosts) - len(places) if serial else 0
        begun = 0
        for names in batches(places, serial, play.position):
            batch = Batch(play, [name for name in names if not self._states[name].lost], self.options.forks)
            if batch.hosts:
                self._run_batch(play, batch, hosts)
            begun += len(names)
            failed += len(batch.failed)
            if why := self._spent(batch, len(names), failed):
                if begun < len(places):
                    self.tally(Notice(f"{why}: {', '.join(places[begun:])} not touched"))
                return False
            if batch.over:
                break
        return True

    def _spent(self, batch: Batch, size: int, failed: int) -> str:
        """Why no more batches are begun after one; "": they are."""
        budget = self.options.budget
        if len(batch.failed) == size:
            # As in Ansible: when a whole batch has failed, nothing else is touched.
            return "all hosts of a batch failed"
        if budget is not None and budget.spent(failed, len(batch.failed), size):
            what = f"{len(batch.failed)} of a batch of {size}" if budget.percent else str(failed)
            return f"{what} failed, and no more than {budget} may"
        return ""

    def _run_batch(self, play: Play, batch: Batch, hosts: list[str]) -> None:
        states = self._states
        context = Context(
            self.options, self.tally, self._files, self._connect, self._templar, states, self._inventory, self._prompt
        )
        if self._begin and self.options.start_at is None:
            self._begin([self._sure[name] for name in batch.hosts[: self.options.forks] if name in self._sure])
        self._sure.clear()
        # A thread a host, since hosts may have to meet; `forks` of them at work.
        pool = ThreadPoolExecutor(len(batch.hosts), thread_name_prefix="host")
        try:
            _wait([pool.submit(self._host, context, play, states[name], batch, hosts) for name in batch.hosts])
        except KeyboardInterrupt:
            # From now on no session is made and no window is sent.
            self._stop.set()
            batch.stop()
            # A closed session ends what its thread waits for; the node ends what it was running.
            for state in states.values():
                state.close()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _items(self, play: Play, program: Program) -> list[Item]:
        """What there is to do, in order: facts, each section's tasks, and after each the handlers."""
        found = [Item(gather(play), order=(-1,))] if gathers(play, self.options) else []
        for number, section in enumerate(play.sections):
            kept = program.line(section, order=(number,))
            # Handlers that a handler notifies backwards run with the flush behind, so there is one after each section.
            found += kept
            if (kept or number) and self.options.selects_tags(play.words.tags | {"always"}):
                found.append(Item(None, mark="flush", order=(number, 1 << 30)))
        return self._from_start(found)

    def _from_start(self, items: list[Item]) -> list[Item]:
        """What is left when --start-at-task says where to begin; facts are gathered anyhow, by plays before too."""
        name = self.options.start_at
        if name is None or self._started:
            return items
        for at, item in enumerate(items):
            if item.task is not None and fnmatchcase(item.task.name, name):
                return [*(first for first in items[:at] if first.order == (-1,)), *items[at:]]
        return [item for item in items if item.order == (-1,)]

    def _host(self, context: Context, play: Play, state: HostState, batch: Batch, hosts: list[str]) -> None:
        batch.enter()
        name, started = state.host.name, time.monotonic()
        end = HostEnd(name, play.name, "ok", 0.0)
        if self._stop.is_set() or batch.ended:
            batch.leave(name, False)
            return
        try:
            self._enter(play, state, batch, hosts)
            walk = Walk(context, play, state, batch)
            items = self._items(play, walk.program)
            context.emit(HostStart(name, play.name, sum(item.task is not None for item in items)))
            walk.run(items)
        except SparkopsError as error:
            end = self._lost(name, play, error)
        except Exception as error:
            # A bug of ours on one host must not take the other hosts' runs with it.
            self.tally.codes.add(1)
            end = HostEnd(name, play.name, "failed", 0.0, f"a bug in sparkops: {type(error).__name__}: {error}", "-vvv")
        state.lost = state.lost or end.state != "ok"
        if state.lost or self._last[name] is play:
            # Not at the end of the run: an open connection wakes up ten times a second, and holds the node's lease.
            state.close()
        context.emit(HostEnd(name, play.name, end.state, time.monotonic() - started, end.msg, end.hint))
        batch.leave(name, end.state != "ok")

    def _lost(self, name: str, play: Play, error: SparkopsError) -> HostEnd:
        hint = error.hint or ""
        if self._stop.is_set():
            return HostEnd(name, play.name, "failed", 0.0, "interrupted")
        if isinstance(error, InputErrors):
            error = error.errors[0]
        self.tally.codes.add(error.exit_code)
        if error.exit_code == 4:
            self.tally.unreachable(name)
            return HostEnd(name, play.name, "unreachable", 0.0, error.message, hint)
        # The failed task's own event has said what happened.
        message = (
            "" if isinstance(error, TaskFailed) else str(error) if isinstance(error, InputError) else error.message
        )
        return HostEnd(name, play.name, "failed", 0.0, message, hint)


def _wait(futures: list[Future[None]]) -> None:
    """Wait for all; in short turns, so that Ctrl-C is seen at once."""
    left = set(futures)
    while left:
        done, left = wait(left, timeout=0.5, return_when=FIRST_COMPLETED)
        for future in done:
            future.result()
