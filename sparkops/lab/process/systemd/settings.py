"""What a service's unit file asks for, as far as the stand-in knows it (systemd.service(5), systemd.exec(5))."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sparkops.lab.process.systemd import timespan, words
from sparkops.lab.process.systemd.unitfile import Sections

RESTARTS = ("no", "always", "on-success", "on-failure", "on-abnormal")
KILL_MODES = ("control-group", "mixed", "process")
TYPES = ("simple", "exec", "notify")
CLEAN = frozenset({0, -signal.SIGHUP, -signal.SIGINT, -signal.SIGTERM, -signal.SIGPIPE})


@dataclass(frozen=True)
class Command:
    """A command line: `ignore` its failure (-), leave `$` alone (:)."""

    words: list[str]
    ignore: bool = False
    literal: bool = False


@dataclass
class Settings:
    """A service. Times in seconds. `clean`: the ends that count as success, as Popen's returncode.

    environment_files, working_directory: (path, may be missing). unknown: what the stand-in does not carry out.
    """

    description: str = ""
    wanted_by: list[str] = field(default_factory=list)
    type: str = "simple"
    start: Command | None = None
    start_pre: list[Command] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    environment_files: list[tuple[str, bool]] = field(default_factory=list)
    working_directory: tuple[str, bool] = ("", False)
    restart: str = "no"
    restart_sec: float = 0.1
    limit_burst: int = 5
    limit_interval: float = 10.0
    kill_mode: str = "control-group"
    kill_signal: int = signal.SIGTERM
    timeout_start: float = 90.0
    timeout_stop: float = 90.0
    clean: frozenset[int] = CLEAN
    prevent_restart: frozenset[int] = frozenset()
    unknown: list[str] = field(default_factory=list)


def settings(sections: Sections, specifiers: Mapping[str, str]) -> Settings:
    """Read a service. ValueError names the setting that is wrong."""
    found = Settings()
    for section, pairs in sections.items():
        for key, value in pairs:
            try:
                apply(found, section, key, value, specifiers)
            except ValueError as error:
                raise ValueError(f"{key}=: {error}") from error
    if found.start is None:
        raise ValueError("Service has no ExecStart=")
    return found


def apply(found: Settings, section: str, key: str, value: str, specifiers: Mapping[str, str]) -> None:
    """Take one setting over. An empty value empties a list."""
    # The interval has had other names; and the two were in [Service] once, where they still count.
    key = {"StartLimitInterval": "StartLimitIntervalSec", "TimeoutSec": "TimeoutStopSec"}.get(key, key)
    if section == "Install" and key == "WantedBy":
        found.wanted_by += words.split(value)
    elif section in ("Unit", "Service") and key in PLAIN:
        name, convert = PLAIN[key]
        setattr(found, name, convert(words.specify(value, specifiers)))
    elif section == "Service" and key in LISTS:
        name = LISTS[key]
        setattr(found, name, [*found.start_pre, command(value, specifiers)] if value else [])
    elif section == "Service" and key == "ExecStart":
        found.start = command(value, specifiers) if value else None
    elif section == "Service" and key == "Environment":
        pairs = [words.specify(word, specifiers).partition("=") for word in words.split(value)]
        found.environment = {**found.environment, **{k: v for k, _, v in pairs}} if value else {}
    elif section == "Service" and key == "EnvironmentFile":
        found.environment_files = [*found.environment_files, optional(value, specifiers)] if value else []
    elif section == "Service" and key == "WorkingDirectory":
        found.working_directory = optional(value, specifiers)
    elif section == "Service" and key.startswith("Exec"):
        found.unknown.append(key)


def optional(value: str, specifiers: Mapping[str, str]) -> tuple[str, bool]:
    """A path, and whether it may be missing (-)."""
    return words.specify(value.removeprefix("-"), specifiers), value.startswith("-")


def command(value: str, specifiers: Mapping[str, str]) -> Command:
    """A command line with its prefixes; @ + and ! mean nothing that an ordinary user's manager could do."""
    rest = value.lstrip("-:@+!")
    prefixes = value[: len(value) - len(rest)]
    if forbidden := set(prefixes) - set("-:"):
        raise ValueError(f"the prefix {forbidden.pop()} is not known to the lab's stand-in")
    line = [words.specify(word, specifiers) for word in words.split(rest)]
    if not line or ";" in line:
        raise ValueError("there has to be one command")
    return Command(line, "-" in prefixes, ":" in prefixes)


def choice(*allowed: str) -> Any:
    """A converter that takes these words."""

    def convert(value: str) -> str:
        if value not in allowed:
            raise ValueError(f"{value} is not known to the lab's stand-in; it knows {', '.join(allowed)}")
        return value

    return convert


def statuses(value: str) -> frozenset[int]:
    """Exit statuses and signal names as Popen's returncodes."""
    return frozenset(int(word) if word.isdigit() else -signal_number(word) for word in value.split())


def signal_number(value: str) -> int:
    """The number of a signal: SIGTERM, TERM."""
    try:
        return signal.Signals["SIG" + value.removeprefix("SIG")]
    except KeyError as error:
        raise ValueError(f"{value} is no signal") from error


LISTS = {"ExecStartPre": "start_pre"}
PLAIN: dict[str, tuple[str, Any]] = {
    "Description": ("description", str),
    "Type": ("type", choice(*TYPES)),
    "Restart": ("restart", choice(*RESTARTS)),
    "RestartSec": ("restart_sec", timespan.parse),
    "StartLimitBurst": ("limit_burst", int),
    "StartLimitIntervalSec": ("limit_interval", timespan.parse),
    "KillMode": ("kill_mode", choice(*KILL_MODES)),
    "KillSignal": ("kill_signal", signal_number),
    "TimeoutStartSec": ("timeout_start", timespan.parse),
    "TimeoutStopSec": ("timeout_stop", timespan.parse),
    "SuccessExitStatus": ("clean", lambda value: CLEAN | statuses(value)),
    "RestartPreventExitStatus": ("prevent_restart", statuses),
}


def environment_file(text: str) -> dict[str, str]:
    """The variables of an EnvironmentFile=: NAME=value lines, # and ; comments, quotes as in a unit's words."""
    variables: dict[str, str] = {}
    for line in text.replace("\\\n", "").splitlines():
        name, equals, value = line.strip().partition("=")
        if equals and name[0:1] not in ("#", ";", ""):
            value = value.strip()
            quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
            variables[name.strip()] = value[1:-1] if quoted else value
    return variables
