"""Write a systemd unit and keep it in a state; restarts it only when something it runs from has changed.

Example:
    - name: The copy is served
      systemd_unit:
        name: sparkops-vllm
        content: "{{ lookup('template', 'vllm.service.j2') }}"
        enabled: true
        state: started
        watch: [/opt/sparkops/releases/vllm/current]
"""

from __future__ import annotations

import os

from sparkops.node import systemd
from sparkops.node.api import Arguments, Failure, Node, Outcome, Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

# How long a start is watched, in seconds, before it counts as done.
SETTLE = 0.6
# How long a user's manager may take to come up after lingering was switched on.
MANAGER_WAIT = 10.0
# Stands in the first lines of the units that sparkops' own templates make.
MARK = b"Written by sparkops"


class Args(Arguments):
    """name: with its suffix, or .service is meant. content: the unit's text; left out, the unit must exist.

    scope: user needs no root, and lingers when enabled. enabled: started at boot, or not; left out, as it is.

    state: started restarts a running unit when its text, or a path in `watch` (a link: the link itself), is newer
    than its process, or with `restart`. absent stops it and removes its file. watch: what the unit runs from.
    restart: a task before it changed what it runs (check mode, where nothing on disk is newer, needs to be told).

    known: the content comes from a file on the node, which the service itself may have written: in the system scope it
    is written only when it has been this unit's before, and else the unit stays as it is, with a warning.
    """

    name: str
    content: str | None = None
    scope: Literal["system", "user"] = "system"
    state: Literal["started", "stopped", "restarted", "absent"] | None = None
    enabled: bool | None = None
    watch: list[Path] = []
    restart: bool = False
    known: bool = False


def apply(args: Args, node: Node) -> Outcome:
    """Result: name, scope, path, actions, active, sub, enabled, pid; journal (20 lines) in a failure to start;
    backup_file when another's unit was replaced: it is kept as PATH.orig, once.
    """
    name = systemd.unit_name(args.name)
    if args.scope == "system" and os.geteuid() != 0:
        raise Failure("systemd_unit in the system scope needs become: true (scope: user does without)", name=name)
    if node.which("systemctl") is None:
        raise Failure("there is no systemctl on this node; units need systemd", name=name)
    unit = Unit(name, args, node)
    if args.state == "absent":
        unit.remove()
    else:
        unit.linger()
        unit.write()
        unit.load()
        if unit.exists():
            unit.enable()
            unit.run()
    return unit.outcome()


class Unit:
    """One unit while a task works on it; `actions` collects what it (in check mode: would have) done."""

    def __init__(self, name: str, args: Args, node: Node) -> None:
        self.name = name
        self.args = args
        self.node = node
        self.manager = systemd.Manager(node, args.scope)
        self.path = os.path.join(self.manager.folder(), name)
        self.actions: list[str] = []
        self.diff: str | None = None
        self.kept: str | None = None
        self.warnings: list[str] = []
        self.now: dict[str, str] = {}

    def act(self, action: str, verb: str, *words: str) -> None:
        """Note an action, and do it unless this is a check."""
        self.actions.append(action)
        if not self.node.check:
            self.manager.must(verb, *words)

    def linger(self) -> None:
        """A user's enabled units run without a login, and need a manager to be told to."""
        if self.args.scope != "user" or not self.args.enabled:
            return
        from sparkops.node import files

        user = files.user_name(os.geteuid())
        # logind's own record; asking it costs a process.
        if os.path.exists(f"/var/lib/systemd/linger/{user}"):
            return
        env = self.manager.environment()
        asked = self.node.run(["loginctl", "show-user", "-p", "Linger", "--", user], env=env)
        if systemd.properties(asked.out).get("Linger") == "yes":
            return
        self.actions.append("lingering enabled")
        if self.node.check:
            return
        done = self.node.run(["loginctl", "enable-linger", "--", user], env=env)
        if done.rc:
            hint = f"once, by hand: sudo loginctl enable-linger {user}"
            raise Failure(f"{user}'s units would end with the login: {systemd.said(done)}; {hint}", name=self.name)
        self.wait_for_manager()

    def wait_for_manager(self) -> None:
        """Until the user's manager answers. Raises Failure."""
        waited = 0.0
        while not self.manager.show(self.name):
            if waited >= MANAGER_WAIT:
                raise Failure(f"the user's systemd did not come up within {MANAGER_WAIT:g} s", name=self.name)
            self.node.pause(0.1)
            waited += 0.1

    def write(self) -> None:
        """The unit's file."""
        if self.args.content is None:
            return
        from sparkops.node import files, placing, units

        data = self.args.content.encode("utf-8", "surrogateescape")
        if self.args.known and self.args.scope == "system" and not units.known(self.path, data):
            self.warnings.append(f"{self.name} stays as it is: nobody can tell who wrote the one of that release")
            return

        if not self.node.check:
            try:
                os.makedirs(os.path.dirname(self.path), exist_ok=True)
            except OSError as error:
                raise files.refusal("make the folder of", self.path, error) from error
        wanted = placing.Content.of(data)
        attributes = placing.Attributes("0644", None, None)
        guarded = self.args.scope == "system" and not self.node.check
        if os.path.isfile(self.path) and not placing.same(self.path, wanted) and not self.node.check:
            self.kept = keep(self.path)
            if guarded and not self.kept:
                units.remember(self.path, files.read(self.path))
        placed = placing.place(self.path, wanted, attributes, self.node, backup=False, force=True)
        if placed.state == "changed":
            self.actions.append("unit written")
            self.diff = placed.diff
        if guarded:
            units.remember(self.path, data)

    def load(self) -> None:
        """Have systemd read what is on disk, and look at the unit."""
        self.now = self.manager.show(self.name)
        if not self.now and not self.node.check:
            asked = self.manager.call("show", "--", self.name)
            hint = "; enabled: true switches lingering on" if self.args.scope == "user" else ""
            raise Failure(f"no {self.args.scope} systemd answers: {systemd.said(asked)}{hint}", name=self.name)
        if "unit written" in self.actions or self.now.get("NeedDaemonReload") == "yes":
            self.act("daemon-reload", "daemon-reload")
            if not self.node.check:
                self.now = self.manager.show(self.name)

    def exists(self) -> bool:
        """Whether there is a unit to work on. Raises Failure when not, except in check mode."""
        if self.args.content is not None and not self.warnings:
            return True
        if self.now.get("LoadState") in ("loaded", "masked"):
            return True
        if self.node.check:
            return False
        state = self.now.get("LoadState", "not-found")
        raise Failure(
            f"unit {self.name} is {state} on this node; give its content, or install it first", name=self.name
        )

    def enable(self) -> None:
        """Started at boot, or not."""
        state = self.now.get("UnitFileState", "")
        if self.args.enabled is True and state not in ("enabled", "alias"):
            if state in ("static", "indirect", "generated", "transient"):
                raise Failure(f"{self.name} can't be enabled: it has no [Install] section ({state})", name=self.name)
            self.act("enabled", "enable", "--", self.name)
        elif self.args.enabled is False and state.startswith(("enabled", "linked")):
            self.act("disabled", "disable", "--", self.name)

    def run(self) -> None:
        """Started, stopped or restarted: one of them, never two."""
        up = systemd.running(self.now)
        if self.args.state == "stopped" and (up or self.now.get("ActiveState") == "deactivating"):
            self.act("stopped", "stop", "--", self.name)
        elif self.args.state == "restarted":
            self.start("restarted", "restart")
        elif self.args.state == "started" and not up:
            self.start("started", "start")
        elif self.args.state == "started":
            reason = self.stale()
            if reason:
                self.start(f"restarted ({reason})", "restart")

    def stale(self) -> str | None:
        """Why the running process is not what is on disk. A run that was killed before its restart shows here too."""
        if "daemon-reload" in self.actions:
            return "its unit changed"
        if self.args.restart:
            return "what it runs changed"
        own = [self.path] if self.args.content is not None else []
        changed = systemd.newer([*own, *self.args.watch], systemd.started_at(self.now))
        return f"{changed} is newer" if changed else None

    def start(self, action: str, verb: str) -> None:
        """Start or restart, and watch it for a moment. Raises Failure with the journal's end."""
        self.actions.append(action)
        if self.node.check:
            return
        # A start that was asked for does not count against StartLimitBurst, which is there to end a crash loop.
        self.manager.call("reset-failed", "--", self.name)
        done = self.manager.call(verb, "--", self.name)
        self.now = self.manager.show(self.name)
        if done.rc:
            raise self.failure(f"{self.name} did not start: {systemd.said(done)}")
        restarts = systemd.number(self.now, "NRestarts")
        waited = 0.0
        while True:
            broken = trouble(self.now, restarts)
            if broken:
                raise self.failure(f"{self.name} started and is {broken}")
            if waited >= SETTLE:
                return
            self.node.pause(0.1)
            waited += 0.1
            self.now = self.manager.show(self.name)

    def failure(self, message: str) -> Failure:
        """The Failure with what the unit logged last."""
        journal = self.manager.journal(self.name)
        lines = systemd.shown(journal) or ["(its journal is empty, or this user may not read it)"]
        return Failure("\n".join([message, *lines]), journal=journal, **self.said())

    def remove(self) -> None:
        """Stop and disable the unit and take its file away."""
        from sparkops.node import files, units

        there = os.path.lexists(self.path)
        self.now = self.manager.show(self.name)
        if systemd.running(self.now):
            self.act("stopped", "stop", "--", self.name)
        if there and self.now.get("UnitFileState", "").startswith(("enabled", "linked")):
            self.act("disabled", "disable", "--", self.name)
        if there:
            self.actions.append("unit removed")
            if not self.node.check:
                try:
                    units.forget(self.path)
                    os.unlink(self.path)
                    files.sync_folder(os.path.dirname(self.path))
                except OSError as error:
                    raise files.refusal("remove", self.path, error) from error
                self.manager.call("daemon-reload")
                self.manager.call("reset-failed", "--", self.name)
                self.now = self.manager.show(self.name)

    def said(self) -> dict[str, Any]:
        """The result's keys."""
        return {
            "name": self.name,
            "scope": self.args.scope,
            "path": self.path,
            "actions": self.actions,
            "active": self.now.get("ActiveState", "unknown"),
            "sub": self.now.get("SubState", ""),
            "enabled": self.now.get("UnitFileState", ""),
            "pid": systemd.number(self.now, "MainPID"),
            **({"backup_file": self.kept} if self.kept else {}),
            **({"warnings": self.warnings} if self.warnings else {}),
        }

    def outcome(self) -> Outcome:
        """changed when anything was done."""
        if self.actions:
            return Outcome.changed(", ".join(self.actions), self.diff, **self.said())
        if self.node.check and self.args.state != "absent":
            if not self.exists():
                return Outcome.unknown(f"{self.name} is not there yet", **self.said())
            coming = [path for path in self.args.watch if not os.path.lexists(path)]
            if coming:
                return Outcome.unknown(f"{coming[0]} is not there yet", **self.said())
        return Outcome.ok(**self.said())


def keep(path: str) -> str | None:
    """Copy a unit that sparkops did not make to PATH.orig, unless there is one; returns that name when it did."""
    from sparkops.node import files

    orig, data = path + ".orig", files.read(path)
    if os.path.lexists(orig) or any(MARK in line for line in data.splitlines()[:5]):
        return None
    files.write(orig, data, os.stat(path).st_mode & 0o7777)
    return orig


def trouble(unit: dict[str, str], restarts: int) -> str | None:
    """What is wrong with a unit that was started, in systemd's words; None when nothing is."""
    state, sub = unit.get("ActiveState", ""), unit.get("SubState", "")
    if sub == "auto-restart" or systemd.number(unit, "NRestarts") > restarts:
        return f"restarting in a loop (result {unit.get('Result')})"
    if systemd.running(unit) or (unit.get("Type") == "oneshot" and state == "inactive"):
        return None
    return f"{state} ({sub}, result {unit.get('Result')})"
