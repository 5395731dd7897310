"""systemctl --user, as far as services are concerned: words in, text and an exit status out (systemctl(1), 255)."""

from __future__ import annotations

import getopt
from collections.abc import Callable
from fnmatch import fnmatchcase
from threading import Thread

from sparkops.lab.process.control import Reply
from sparkops.lab.process.systemd import unitfile
from sparkops.lab.process.systemd.journal import show
from sparkops.lab.process.systemd.manager import LoadError, Manager
from sparkops.lab.process.systemd.properties import exit_text, properties
from sparkops.lab.process.systemd.tools import shown, unit_name

SHORT = "p:P:t:n:o:qalf"
LONG = ["user", "system", "property=", "value", "no-pager", "now", "quiet", "no-legend", "plain", "all", "no-block"]
LONG += [
    "full",
    "type=",
    "state=",
    "lines=",
    "output=",
    "no-ask-password",
    "no-warn",
    "force",
    "version",
    "failed",
    "wait",
]
NO_SYSTEM = "System has not been booted with systemd as init system (PID 1). Can't operate.\n"
NO_SYSTEM += "Failed to connect to bus: Host is down\n"
VERSION = "systemd 255 (the sparkops lab's stand-in: simulated, services of one user only)\n"
# Why a start failed, by the job's failure.
BECAUSE = {
    "exit-code": "failed because the control process exited with error code.",
    "signal": "failed because a fatal signal was delivered to the control process.",
    "timeout": "failed because a timeout was exceeded.",
    "resources": "failed because of unavailable resources or another system error.",
    "start-limit-hit": "failed because start of the service was attempted too often.",
    "canceled": "canceled.",
}
NOT_FOUND = 5
NOT_ACTIVE = 3
NO_SUCH_UNIT = 4

Options = list[tuple[str, str]]


def systemctl(manager: Manager, argv: list[str]) -> Reply:
    """Carry out a command line."""
    try:
        options, words = getopt.gnu_getopt(argv, SHORT, LONG)
    except getopt.GetoptError as error:
        return Reply(1, err=f"systemctl: {error}\n")
    if ("--version", "") in options:
        return Reply(0, VERSION)
    if ("--user", "") not in options:
        return Reply(1, err=NO_SYSTEM)
    verb, *units = words or ["list-units"]
    if verb not in VERBS:
        return Reply(1, err=f"Unknown command verb {verb}. (It is not known to the lab's stand-in.)\n")
    return VERBS[verb](manager, options, units)


def given(options: Options, *names: str) -> bool:
    """Whether a flag was given under any of its names."""
    return any(key in names for key, _ in options)


def each(work: Callable[[Manager, Options, str], Reply], least: bool = False) -> Callable[..., Reply]:
    """A verb for several units: outputs joined; the worst exit status, or with `least` the best."""

    def verb(manager: Manager, options: Options, units: list[str]) -> Reply:
        if not units:
            return Reply(1, err="Too few arguments.\n")
        replies = [work(manager, options, unit_name(unit)) for unit in units]
        status = (min if least else max)(reply.status for reply in replies)
        return Reply(status, "".join(r.out for r in replies), "".join(r.err for r in replies))

    return verb


def start(manager: Manager, options: Options, unit: str) -> Reply:
    """start UNIT."""
    return started("start", manager, options, unit)


def restart(manager: Manager, options: Options, unit: str) -> Reply:
    """restart UNIT: also one that does not run."""
    return started("restart", manager, options, unit)


def started(verb: str, manager: Manager, options: Options, unit: str) -> Reply:
    """Start or restart a unit, and say so when that fails."""
    try:
        service = manager.load(unit)
    except LoadError as error:
        return unloaded(verb, unit, error)
    warning = ""
    if manager.stale(unit):
        warning = f"Warning: The unit file, source configuration file or drop-ins of {unit} changed on disk."
        warning += " Run 'systemctl --user daemon-reload' to reload units.\n"

    def work() -> str:
        if verb == "restart":
            service.stop()
        return service.start()

    if given(options, "--no-block"):
        Thread(target=work, daemon=True).start()
        return Reply(0, err=warning)
    if not (failure := work()):
        return Reply(0, err=warning)
    text = f"Job for {unit} {BECAUSE.get(failure, 'failed.')}\n"
    if failure != "canceled":
        text += f'See "systemctl --user status {unit}" and "journalctl --user -xeu {unit}" for details.\n'
    return Reply(1, err=warning + text)


def stop(manager: Manager, _options: Options, unit: str) -> Reply:
    """stop UNIT."""
    try:
        manager.load(unit).stop()
    except LoadError as error:
        return unloaded("stop", unit, error)
    return Reply()


def unloaded(verb: str, unit: str, error: LoadError) -> Reply:
    """A unit that cannot be had."""
    return Reply(NOT_FOUND if error.state == "not-found" else 1, err=f"Failed to {verb} {unit}: {error}\n")


def try_restart(manager: Manager, options: Options, unit: str) -> Reply:
    """try-restart UNIT: only one that runs."""
    return restart(manager, options, unit) if active_state(manager, unit) == "active" else Reply()


def active_state(manager: Manager, unit: str) -> str:
    """ActiveState; `inactive` for a unit that does not exist, as systemd has it."""
    try:
        return manager.load(unit).state.active
    except LoadError:
        return "inactive"


def is_active(manager: Manager, options: Options, unit: str) -> Reply:
    """is-active UNIT: 0 when it is, else 3."""
    state = active_state(manager, unit)
    return Reply(0 if state == "active" else NOT_ACTIVE, "" if given(options, "-q", "--quiet") else f"{state}\n")


def is_failed(manager: Manager, options: Options, unit: str) -> Reply:
    """is-failed UNIT: 0 when it is."""
    state = active_state(manager, unit)
    return Reply(0 if state == "failed" else 1, "" if given(options, "-q", "--quiet") else f"{state}\n")


def is_enabled(manager: Manager, options: Options, unit: str) -> Reply:
    """is-enabled UNIT."""
    state = manager.file_state(unit) or "not-found"
    status = {"enabled": 0, "static": 0, "not-found": NO_SUCH_UNIT}.get(state, 1)
    return Reply(status, "" if given(options, "-q", "--quiet") else f"{state}\n")


def enable(manager: Manager, options: Options, unit: str) -> Reply:
    """enable [--now] UNIT."""
    try:
        made = manager.enable(unit)
        static = not manager.load(unit).settings.wanted_by
    except LoadError as error:
        missing = f"Unit file {unit} does not exist."
        return Reply(1, err=f"Failed to enable unit: {missing if error.state == 'not-found' else error}\n")
    text = "".join(f"Created symlink {link} → {file}.\n" for link, file in made)
    if static and not given(options, "--no-warn"):
        text += "The unit files have no installation config (WantedBy=, RequiredBy=, UpheldBy=, Also=, or Alias=\n"
        text += "settings in the [Install] section).\n"
    reply = start(manager, options, unit) if given(options, "--now") else Reply()
    return reply._replace(err=text + reply.err)


def disable(manager: Manager, options: Options, unit: str) -> Reply:
    """disable [--now] UNIT."""
    links = manager.disable(unit)
    if not links and unitfile.find(unit, manager.folders) is None:
        return Reply(1, err=f"Failed to disable unit: Unit file {unit} does not exist.\n")
    text = "".join(f'Removed "{link}".\n' for link in links)
    reply = stop(manager, options, unit) if given(options, "--now") else Reply()
    return reply._replace(err=text + reply.err)


def show_unit(manager: Manager, options: Options, units: list[str]) -> Reply:
    """show [-p A,B] [--value] UNIT...: a blank line between units."""
    texts = [shown(options, properties(manager, unit_name(unit))) for unit in units]
    return Reply(0, "\n".join(texts))


def cat(manager: Manager, _options: Options, unit: str) -> Reply:
    """cat UNIT: its files as they are on disk."""
    file = unitfile.read(unit, manager.folders)
    if file is None:
        return Reply(1, err=f"No files found for {unit}.\n")
    return Reply(0, "\n".join(f"# {path}\n{path.read_text()}" for path in (file.path, *file.dropins)))


def status(manager: Manager, options: Options, unit: str) -> Reply:
    """status UNIT: for people."""
    values = properties(manager, unit)
    if values["LoadState"] == "not-found" and values["ActiveState"] == "inactive":
        return Reply(NO_SUCH_UNIT, err=f"Unit {unit} could not be found.\n")
    service = manager.services.get(unit)
    title = f"{unit} - {values['Description']}"
    lines = [f"● {title}", f"     Loaded: {values['LoadState']} ({values['FragmentPath']}; {values['UnitFileState']})"]
    entered = "ActiveEnter" if values["ActiveState"] == "active" else "InactiveEnter"
    since = f" since {values[f'{entered}Timestamp']}" if values[f"{entered}Timestamp"] else ""
    lines.append(f"     Active: {values['ActiveState']} ({values['SubState']}){since}")
    if service and service.state.pid:
        ended = "" if service.state.main else f" {exit_text(service.state)}"
        lines.append(f"   Main PID: {service.state.pid}{ended}")
    count = int(next((value for key, value in options if key in ("-n", "--lines")), "10"))
    entries = manager.journal.read([unit])
    tail = [show(entry, manager.host, "short") for entry in entries[max(0, len(entries) - count) :]]
    lines += ["", *tail] if tail else []
    return Reply(0 if values["ActiveState"] in ("active", "activating") else NOT_ACTIVE, "\n".join(lines) + "\n")


def list_units(manager: Manager, options: Options, patterns: list[str]) -> Reply:
    """list-units [--all] [--state=S,..] [--no-legend] [PATTERN...]."""
    states = {state for key, value in options if key == "--state" for state in value.split(",")}
    states |= {"failed"} if given(options, "--failed") else set()
    rows = []
    for name in sorted({*manager.services, *(link.name for link in manager.config.glob("*.wants/*.service"))}):
        values = properties(manager, name)
        words = {values["ActiveState"], values["SubState"], values["LoadState"]}
        wanted = words & states if states else given(options, "-a", "--all") or values["ActiveState"] != "inactive"
        if wanted and (not patterns or any(fnmatchcase(name, unit_name(pattern)) for pattern in patterns)):
            row = [name, values["LoadState"], values["ActiveState"], values["SubState"], values["Description"]]
            rows.append(" ".join(row) if given(options, "--plain") else "  " + " ".join(row))
    if given(options, "--no-legend"):
        return Reply(0, "".join(f"{row}\n" for row in rows))
    head = "  UNIT LOAD ACTIVE SUB DESCRIPTION\n"
    return Reply(0, head + "".join(f"{row}\n" for row in rows) + f"\n{len(rows)} loaded units listed.\n")


def reset_failed(manager: Manager, _options: Options, units: list[str]) -> Reply:
    """reset-failed [PATTERN...]."""
    if unknown := [u for u in map(unit_name, units) if "*" not in u and u not in manager.services]:
        return Reply(1, err=f"Failed to reset failed state of unit {unknown[0]}: Unit {unknown[0]} not loaded.\n")
    for name, service in list(manager.services.items()):
        if not units or any(fnmatchcase(name, unit_name(pattern)) for pattern in units):
            service.reset_failed()
    return Reply()


def daemon_reload(manager: Manager, _options: Options, _units: list[str]) -> Reply:
    """daemon-reload."""
    manager.reload()
    return Reply()


def is_system_running(_manager: Manager, _options: Options, _units: list[str]) -> Reply:
    """is-system-running."""
    return Reply(0, "running\n")


VERBS: dict[str, Callable[..., Reply]] = {
    "start": each(start),
    "stop": each(stop),
    "restart": each(restart),
    "try-restart": each(try_restart),
    "is-active": each(is_active, least=True),
    "is-failed": each(is_failed, least=True),
    "is-enabled": each(is_enabled, least=True),
    "enable": each(enable),
    "disable": each(disable),
    "cat": each(cat),
    "status": each(status),
    "show": show_unit,
    "list-units": list_units,
    "reset-failed": reset_failed,
    "daemon-reload": daemon_reload,
    "is-system-running": is_system_running,
}
