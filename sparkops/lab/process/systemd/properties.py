"""What `systemctl show` says of a unit, in systemd's order and spelling."""

from __future__ import annotations

import signal

from sparkops.lab.process.systemd import timespan
from sparkops.lab.process.systemd.manager import LoadError, Manager
from sparkops.lab.process.systemd.service import Service
from sparkops.lab.process.systemd.settings import Settings
from sparkops.lab.process.systemd.state import Moment, State

SERVICE_TIMES = ("ExecMainStart", "ExecMainExit")
UNIT_TIMES = ("StateChange", "InactiveExit", "ActiveEnter", "ActiveExit", "InactiveEnter")


def properties(manager: Manager, name: str) -> dict[str, str]:
    """Every property known of a unit; of one that does not exist too, as systemd does."""
    state, load, settings = State(), "loaded", Settings()
    try:
        service: Service | None = manager.load(name)
    except LoadError as error:
        service, load = None, error.state
    if service:
        state, settings = service.state, service.settings
        if manager.files.get(name) is None:
            load = "not-found"
    file = manager.files.get(name) if service else None
    return {
        "Type": settings.type,
        "Restart": settings.restart,
        "RestartUSec": timespan.show(settings.restart_sec),
        "TimeoutStartUSec": timespan.show(settings.timeout_start),
        "TimeoutStopUSec": timespan.show(settings.timeout_stop),
        "MainPID": str(state.main),
        "Result": state.result,
        "NRestarts": str(state.restarts),
        **times(state, SERVICE_TIMES),
        "ExecMainPID": str(state.pid),
        "ExecMainCode": str(state.code),
        "ExecMainStatus": str(state.status),
        "Environment": " ".join(f"{key}={value}" for key, value in settings.environment.items()),
        "WorkingDirectory": settings.working_directory[0],
        "KillMode": settings.kill_mode,
        "KillSignal": str(int(settings.kill_signal)),
        "Id": name,
        "Names": name,
        "Description": settings.description or name,
        "LoadState": load,
        "ActiveState": state.active,
        "SubState": state.sub,
        "FragmentPath": str(file.path) if file else "",
        "DropInPaths": " ".join(map(str, file.dropins)) if file else "",
        "UnitFileState": manager.file_state(name),
        **times(state, UNIT_TIMES),
        "NeedDaemonReload": "yes" if manager.stale(name) else "no",
        "StartLimitIntervalUSec": timespan.show(settings.limit_interval),
        "StartLimitBurst": str(settings.limit_burst),
        "InvocationID": state.invocation,
    }


def times(state: State, names: tuple[str, ...]) -> dict[str, str]:
    """The timestamps of these names on both clocks."""
    shown = {}
    for name in names:
        moment = state.times.get(name, Moment())
        shown[f"{name}Timestamp"] = str(moment)
        shown[f"{name}TimestampMonotonic"] = str(moment.monotonic)
    return shown


def exit_text(state: State) -> str:
    """How the main process ended, for `status`."""
    if state.code == 2:
        return f"(code=killed, signal={signal.Signals(state.status).name.removeprefix('SIG')})"
    return f"(code=exited, status={state.status})"
