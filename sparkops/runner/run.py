"""Runs plays over hosts: each host on a thread of its own, none waiting for another inside a play."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

from sparkops.errors import InputError, InputErrors, SparkopsError, TaskFailed
from sparkops.events import Emit, HostEnd, HostStart, Notice, RunStart
from sparkops.inventory.inventory import Inventory, NoMatch
from sparkops.playbook.files import Files
from sparkops.playbook.model import Play, Task
from sparkops.playbook.template import Templar
from sparkops.runner.hoststate import HostState, OpenSession
from sparkops.runner.options import Options
from sparkops.runner.recap import Tally
from sparkops.runner.walk import Context, Walk, foresee, gather


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

    folders: where lookups and includes of templates look, the playbook's own first.
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
    ) -> None:
        self.options = options
        self._target = target
        self._inventory = target.inventory
        self._emit = emit
        self._files = files
        self._connect = connect
        self._templar = Templar(folders)
        chosen = set(target.names())
        self._plays = [(play, self._hosts(play, chosen)) for play in plays]
        names = dict.fromkeys(name for _, hosts in self._plays for name in hosts)
        self._states = {name: HostState(target.inventory.host(name), {}) for name in names}
        self.tally = Tally(emit, names)
        self._stopping = False

    def _hosts(self, play: Play, chosen: set[str]) -> list[str]:
        try:
            return [host.name for host in self._inventory.select(play.hosts) if host.name in chosen]
        except NoMatch:
            return []

    def check(self) -> None:
        """Everything that can be known to be wrong before the first connection. Raises InputErrors."""
        found: dict[str, SparkopsError] = {}
        for play, hosts in self._plays:
            tasks = self._tasks(play)
            for name in hosts:
                scope = self._states[name].scope(self._templar, play, self.options)
                for error in foresee(play, tasks, scope, self._files):
                    found.setdefault(str(error), error)
        if found:
            raise InputErrors(list(found.values()))

    def execute(self) -> int:
        """Run, and give the exit code. The recap is emitted in any case; Ctrl-C hangs up on all nodes and gives 130."""
        started = RunStart(
            self._plays[0][0].file if self._plays else "", list(self._states), self.options.check, self.options.forks
        )
        self.tally(started)
        for part in self._target.unmatched():
            self.tally(Notice(f"nothing matches {part!r}"))
        try:
            for play, hosts in self._plays:
                self._play(play, [name for name in hosts if not self._states[name].lost])
        except KeyboardInterrupt:
            self.tally.codes.add(130)
        finally:
            for state in self._states.values():
                state.close()
        code = self.tally.exit_code()
        self._emit(self.tally.recap(code))
        return code

    def _tasks(self, play: Play) -> list[Task]:
        tasks = [task for task in play.tasks if self.options.selects(task)]
        return [gather(play), *tasks] if play.gather_facts else tasks

    def _play(self, play: Play, hosts: list[str]) -> None:
        if not hosts:
            self.tally(Notice(f"play {play.name!r}: no hosts matched {play.hosts!r}, skipped"))
            return
        context = Context(self.options, self.tally, self._files, self._connect, self._templar)
        tasks = self._tasks(play)
        pool = ThreadPoolExecutor(min(self.options.forks, len(hosts)), thread_name_prefix="host")
        futures = [pool.submit(self._host, context, play, self._states[name], tasks) for name in hosts]
        try:
            _wait(futures)
        except KeyboardInterrupt:
            self._stopping = True
            # A closed session ends what its thread waits for; the node ends what it was running.
            for state in self._states.values():
                state.close()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _host(self, context: Context, play: Play, state: HostState, tasks: list[Task]) -> None:
        if self._stopping:
            return
        name, started = state.host.name, time.monotonic()
        context.emit(HostStart(name, play.name, len(tasks)))
        end = HostEnd(name, play.name, "ok", 0.0)
        try:
            Walk(context, play, state).run(tasks)
        except SparkopsError as error:
            state.lost = True
            state.close()
            end = self._lost(name, play, error)
        except Exception as error:
            # A bug of ours on one host must not take the other hosts' runs with it.
            state.lost = True
            state.close()
            self.tally.codes.add(1)
            end = HostEnd(name, play.name, "failed", 0.0, f"a bug in sparkops: {type(error).__name__}: {error}", "-vvv")
        context.emit(HostEnd(name, play.name, end.state, time.monotonic() - started, end.msg, end.hint))

    def _lost(self, name: str, play: Play, error: SparkopsError) -> HostEnd:
        hint = error.hint or ""
        if self._stopping:
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
