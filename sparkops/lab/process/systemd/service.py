"""The life of a service: started, watched, restarted, stopped. It has a thread for as long as it is not dead."""

from __future__ import annotations

import os
import signal
import subprocess
import time
import uuid
from collections import deque
from collections.abc import Mapping
from threading import Condition, Event, Thread

from sparkops.lab.process import processes
from sparkops.lab.process.systemd import launch
from sparkops.lab.process.systemd.journal import Journal
from sparkops.lab.process.systemd.settings import Command, Settings
from sparkops.lab.process.systemd.state import State

# Names of exit statuses in the journal (systemd.exec(5)); others are n/a.
STATUS_NAMES = {0: "SUCCESS", 1: "FAILURE", 2: "INVALIDARGUMENT", launch.CHDIR: "CHDIR", launch.EXEC: "EXEC"}
# Conditions do not wait longer than this many seconds, `infinity` included.
FOREVER = 1e8


class Job:
    """A wish to have a service started. `failure`: why it was not, a Result or "canceled"; "" when it was."""

    def __init__(self) -> None:
        self.done = Event()
        self.failure = ""

    def finish(self, failure: str = "") -> None:
        """Let who waits go on; only the first time counts."""
        if not self.done.is_set():
            self.failure = failure
            self.done.set()


class Service:
    """A service that was loaded. `changed` guards all that its thread and its users share."""

    def __init__(self, name: str, settings: Settings, base: Mapping[str, str], journal: Journal) -> None:
        self.name = name
        self.settings = settings
        self.base = base
        self.journal = journal
        self.state = State()
        self.changed = Condition()
        self.thread: Thread | None = None
        self.running: launch.Running | None = None
        self.job = Job()
        self.wanted = False  # a start that no activation has taken up yet
        self.stopping = False
        self.starts: deque[float] = deque()

    @property
    def title(self) -> str:
        """How the journal speaks of it."""
        return f"{self.name} - {self.settings.description}" if self.settings.description else self.name

    def start(self) -> str:
        """Start it and return once it runs, at once if it does. Why it does not, as `Job.failure`."""
        with self.changed:
            while self.stopping:
                self.changed.wait()
            if self.state.active == "active":
                return ""
            if self.thread is None or self.job.done.is_set():
                self.job, self.wanted = Job(), True
            job = self.job
            if self.thread is None:
                self.thread = Thread(target=self.live, name=self.name, daemon=True)
                self.thread.start()
            self.changed.notify_all()
        job.done.wait()
        return job.failure

    def stop(self) -> None:
        """Stop it; return when nothing of it runs."""
        with self.changed:
            if (thread := self.thread) is None:
                return
            if not self.stopping:
                self.stopping = True
                self.log(f"Stopping {self.title}...")
                if self.running:
                    self.state.enter("stop-sigterm")
                    self.signal(self.settings.kill_signal)
            self.changed.notify_all()
        thread.join(min(self.settings.timeout_stop, FOREVER))
        with self.changed:
            if self.running and self.thread is thread:
                self.log(f"{self.name}: State 'stop-sigterm' timed out. Killing.")
                self.state.result = "timeout"
                self.state.enter("stop-sigkill")
                self.signal(signal.SIGKILL)
        thread.join()

    def reset_failed(self) -> None:
        """Forget a failure, and the starts that were counted."""
        with self.changed:
            self.starts.clear()
            self.state.restarts = 0
            if self.state.active == "failed":
                self.state.result = "success"
                self.state.enter("dead")

    def live(self) -> None:
        """Activate again and again, until there is no reason to."""
        while self.turn():
            pass

    def turn(self) -> bool:
        """One activation and what follows it; whether there is to be another."""
        if not self.allowed():
            with self.changed:
                self.log(f"{self.name}: Start request repeated too quickly.")
                if self.state.result == "success":
                    self.state.result = "start-limit-hit"
                self.job.finish("start-limit-hit")
                return self.bury()
        returncode = self.activate()
        self.clear()
        with self.changed:
            if self.stopping or not (self.wanted or self.restarts(returncode)):
                return self.bury()
            self.state.enter("auto-restart")
            if not self.wanted:
                self.job.finish(self.state.result)
            delay = min(self.settings.restart_sec, FOREVER)
            self.changed.wait_for(lambda: self.stopping or self.wanted, delay)
            if self.stopping:
                self.state.result = "success"
                return self.bury()
            self.state.restarts = 0 if self.wanted else self.state.restarts + 1
            if not self.wanted:
                self.log(f"{self.name}: Scheduled restart job, restart counter is at {self.state.restarts}.")
            return True

    def allowed(self) -> bool:
        """Whether one more start is within StartLimitBurst= in StartLimitIntervalSec=; it is counted."""
        with self.changed:
            now, burst, interval = time.monotonic(), self.settings.limit_burst, self.settings.limit_interval
            while self.starts and self.starts[0] <= now - interval:
                self.starts.popleft()
            if burst and interval and len(self.starts) >= burst:
                return False
            self.starts.append(now)
            return True

    def activate(self) -> int | None:
        """Run it once. The main process's returncode, None when it did not come to that."""
        with self.changed:
            if self.wanted:
                self.state.restarts = 0
            self.wanted = False
            self.state.result, self.state.invocation = "success", uuid.uuid4().hex
            self.state.enter("start-pre" if self.settings.start_pre else "start")
            for key in self.settings.unknown:
                self.log(f"{self.name}: {key}= is not carried out by the lab's stand-in for systemd, ignoring.")
            if self.settings.start_pre:
                self.log(f"Starting {self.title}...")
        try:
            variables = launch.environment(self.settings, self.base, self.state.invocation)
        except OSError as error:
            self.fail("resources", f"Failed to load environment files: {error.strerror}")
            return None
        for command in self.settings.start_pre:
            if not self.prepare(command, variables):
                return None
        assert self.settings.start
        returncode = self.run(self.settings.start, variables, main=True)
        if returncode is not None and returncode not in self.settings.clean:
            self.fail("exit-code" if returncode >= 0 else "signal", f"Main process exited, {ending(returncode)}")
        return returncode

    def prepare(self, command: Command, variables: dict[str, str]) -> bool:
        """Carry out an ExecStartPre=; whether to go on."""
        returncode = self.run(command, variables, main=False)
        if returncode is None:
            return False
        if returncode not in self.settings.clean and not command.ignore:
            self.fail("exit-code" if returncode >= 0 else "signal", f"Control process exited, {ending(returncode)}")
            return False
        return True

    def run(self, command: Command, variables: dict[str, str], *, main: bool) -> int | None:
        """Run a process of the service to its end: its returncode, None when there was a stop or a timeout."""
        with self.changed:
            if self.stopping:
                return None
            try:
                running = launch.launch(command, self.settings, variables, self.name, self.journal)
            except launch.Unlaunched as error:
                self.log(f"{self.name}: {error}")
                if main:
                    self.state.started(0)
                    self.state.ended(error.status)
                    if self.settings.type == "simple":  # whoever started it was told of the fork only
                        self.job.finish()
                return error.status
            self.running = running
            if main:
                self.state.started(running.process.pid)
                self.state.enter("running")
                self.log(f"Started {self.title}.")
                self.job.finish()
        running.listen()
        try:
            returncode = running.wait(None if main else min(self.settings.timeout_start, FOREVER))
        except subprocess.TimeoutExpired:
            self.fail("timeout", "start-pre operation timed out. Terminating.")
            return None
        finally:
            with self.changed:
                self.running = None
        with self.changed:
            if main:
                self.state.ended(returncode)
        return returncode

    def clear(self) -> None:
        """End what an activation has left running, as KillMode= has it."""
        if self.settings.kill_mode == "process":
            return
        invocation = self.state.invocation
        if launch.rest(invocation):
            with self.changed:
                self.state.enter("stop-sigterm")
            grace = self.settings.timeout_stop if self.settings.kill_mode == "control-group" else 0
            processes.stop(lambda: launch.rest(invocation), grace)

    def signal(self, number: int) -> None:
        """Signal what runs: all of it, or the main process only."""
        if self.running is None:
            return
        mode, process = self.settings.kill_mode, self.running.process
        process.send_signal(number)
        if mode == "control-group" or (mode == "mixed" and number == signal.SIGKILL):
            others = [other for other in launch.rest(self.state.invocation) if other.pid != process.pid]
            processes.send(others, signal.Signals(number))

    def restarts(self, returncode: int | None) -> bool:
        """Whether Restart= wants it back after this end."""
        if returncode is not None and returncode in self.settings.prevent_restart:
            return False
        clean = self.state.result == "success"
        return {
            "no": False,
            "always": True,
            "on-success": clean,
            "on-failure": not clean,
            "on-abnormal": self.state.result in ("signal", "timeout"),
        }[self.settings.restart]

    def bury(self) -> bool:
        """The end of a life: no other turn. `changed` is held."""
        clean = self.state.result == "success"
        self.log(
            f"{self.name}: " + ("Deactivated successfully." if clean else f"Failed with result '{self.state.result}'.")
        )
        self.state.enter("dead" if clean else "failed")
        if self.stopping:
            self.log(f"Stopped {self.title}.")
        self.job.finish("canceled" if self.stopping else self.state.result)
        self.stopping, self.wanted, self.thread = False, False, None
        self.changed.notify_all()
        return False

    def fail(self, result: str, message: str) -> None:
        """Note a failure; the first one of an activation counts."""
        with self.changed:
            self.log(f"{self.name}: {message}")
            if self.state.result == "success":
                self.state.result = result

    def log(self, message: str) -> None:
        """Write to its journal in the manager's name."""
        self.journal.write(self.name, "systemd", os.getpid(), message)


def ending(returncode: int) -> str:
    """How the journal puts an end: "code=exited, status=1/FAILURE"."""
    if returncode < 0:
        return f"code=killed, status={-returncode}/{signal.Signals(-returncode).name.removeprefix('SIG')}"
    return f"code=exited, status={returncode}/{STATUS_NAMES.get(returncode, 'n/a')}"
