"""Talking to a systemd manager, the machine's or the user's: argument lists, properties, journal."""

from __future__ import annotations

import os

from sparkops.node.api import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sparkops.node.api import Completed, Node

KINDS = (".service", ".socket", ".timer", ".target", ".path", ".mount", ".slice")
# systemd.unit(5): what a unit's name may hold. No slash, so a name is no path.
LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:_.@\\-")
PROPERTIES = (
    *("LoadState", "ActiveState", "SubState", "UnitFileState", "NeedDaemonReload", "FragmentPath", "DropInPaths"),
    *("Type", "Result", "NRestarts", "MainPID", "ExecMainStartTimestampMonotonic", "ActiveEnterTimestampMonotonic"),
)
# Of a unit's last lines: how many are looked through, and how many a message shows. When its engine core dies,
# vLLM 0.24 logs some 120 lines of tracebacks after the cause.
JOURNAL_LINES = 300
SHOWN_LINES = 20
# How long journald may take, in seconds, to file what a unit that has just ended said last.
JOURNAL_DELAY = 0.4


def unit_name(name: str) -> str:
    """A unit's full name; .service when it has no other kind. Raises Failure for what systemd would not take."""
    full = name if name.endswith(KINDS) else name + ".service"
    if not name or not LETTERS.issuperset(full) or full[0] in "-." or len(full) > 255:
        raise Failure(f"{name!r} is no name of a unit: letters, digits and :_.@- only, and neither - nor . first")
    return full


class Manager:
    """The systemd manager of a scope ("system" or "user") on a node."""

    def __init__(self, node: Node, scope: str) -> None:
        self.node = node
        self.scope = scope
        self.words = ["--user"] if scope == "user" else []

    def environment(self) -> dict[str, str]:
        """Untranslated output and, for the user's manager, where its bus is: an SSH session may not be told."""
        if self.scope == "system":
            return {"LC_ALL": "C"}
        known = {**os.environ, **self.node.env}
        runtime = known.get("XDG_RUNTIME_DIR") or f"/run/user/{os.geteuid()}"
        bus = known.get("DBUS_SESSION_BUS_ADDRESS") or f"unix:path={runtime}/bus"
        return {"LC_ALL": "C", "XDG_RUNTIME_DIR": runtime, "DBUS_SESSION_BUS_ADDRESS": bus}

    def folder(self) -> str:
        """Where the units of this scope are written."""
        if self.scope == "system":
            return "/etc/systemd/system"
        known = {**os.environ, **self.node.env}
        return os.path.join(known.get("XDG_CONFIG_HOME") or self.node.home + "/.config", "systemd/user")

    def call(self, verb: str, *words: str) -> Completed:
        """systemctl VERB."""
        return self.node.run(["systemctl", *self.words, verb, *words], env=self.environment())

    def must(self, verb: str, *words: str) -> None:
        """systemctl VERB, which has to work. Raises Failure with what systemctl says."""
        done = self.call(verb, *words)
        if done.rc:
            raise Failure(f"systemctl {' '.join([*self.words, verb, *words])}: {said(done)}", rc=done.rc)

    def show(self, unit: str) -> dict[str, str]:
        """A unit's PROPERTIES; {} when there is no manager to ask."""
        done = self.call("show", "-p", ",".join(PROPERTIES), "--", unit)
        return properties(done.out) if done.rc == 0 else {}

    def journal(self, unit: str) -> list[str]:
        """The last lines that the unit logged; [] when there are none that this user may read."""
        self.node.pause(JOURNAL_DELAY)
        argv = ["journalctl", *self.words, "--no-pager", "-q", "-n", str(JOURNAL_LINES), "-u", unit]
        return self.node.run(argv, env=self.environment(), timeout=10).out.splitlines()


def shown(journal: list[str]) -> list[str]:
    """The lines for a message: the last ones, without the insides of tracebacks, which push out what they are of."""
    import re

    inside = re.compile(r"[\])]:? {3,}\S|Traceback \(most recent call last\)")
    return [line for line in journal if not inside.search(line)][-SHOWN_LINES:]


def said(done: Completed) -> str:
    """What a program gave as its reason."""
    return done.err.strip() or done.out.strip() or f"status {done.rc}"


def properties(text: str) -> dict[str, str]:
    """The output of `systemctl show` as a mapping."""
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
    return {key: value for key, _, value in pairs}


def number(unit: dict[str, str], name: str) -> int:
    """A numeric property, 0 when it is not there or not a number."""
    value = unit.get(name, "")
    return int(value) if value.isdigit() else 0


def running(unit: dict[str, str]) -> bool:
    """Whether the unit is up or coming up."""
    return unit.get("ActiveState") in ("active", "activating", "reloading")


def started_at(unit: dict[str, str]) -> float:
    """When the unit's present process started, as time.time() would have said then; 0.0 when there is none.

    From the monotonic stamp: the wall clock may have been set since.
    """
    import time

    stamp = number(unit, "ExecMainStartTimestampMonotonic") or number(unit, "ActiveEnterTimestampMonotonic")
    return time.time() - (time.clock_gettime(time.CLOCK_MONOTONIC) - stamp / 1e6) if stamp else 0.0


def newer(paths: list[str], started: float) -> str | None:
    """The first path (a link itself, not what it points to) that has changed since `started`, else None.

    A time in the future says nothing: it would stay newer after every restart.
    """
    import time

    for path in paths:
        try:
            changed = os.lstat(path).st_mtime
        except OSError:
            continue
        if started < changed <= time.time():
            return path
    return None
