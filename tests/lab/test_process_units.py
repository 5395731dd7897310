"""The stand-in for systemd's user manager, as a user of a node sees it."""

from __future__ import annotations

import re
import shlex
import time

import paramiko
import pytest

from sparkops.lab.lab import Lab
from sparkops.lab.process import processes
from tests.lab.processlab import Done, connected, eventually, execute, home, process_lab

SERVE = "trap 'exit 0' TERM; echo serving; while :; do sleep 0.05; done"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory):
    with process_lab(tmp_path_factory.mktemp("units") / "lab") as up:
        yield up


class Login:
    """A user's session on a node."""

    def __init__(self, lab: Lab, connection: paramiko.Transport) -> None:
        self.units = home(lab) / ".config" / "systemd" / "user"
        self.home = home(lab)
        self.connection = connection

    def run(self, command: str) -> Done:
        return execute(self.connection, command)

    def systemctl(self, command: str) -> Done:
        return self.run(f"systemctl --user {command}")

    def show(self, unit: str, *names: str) -> list[str]:
        """The values of properties, in the order asked for."""
        lines = self.systemctl(f"show {unit} -p {','.join(names)}").out.decode().splitlines()
        values = dict(line.split("=", 1) for line in lines)
        return [values[name] for name in names]

    def unit(self, name: str, script: str = SERVE, service: str = "", unit: str = "", wanted: bool = True) -> str:
        """Write a unit that runs a script of sh."""
        self.units.mkdir(parents=True, exist_ok=True)
        line = shlex.join(["/bin/sh", "-c", script]).replace("$", "$$").replace("%", "%%")
        install = "[Install]\nWantedBy=default.target\n" if wanted else ""
        text = f"[Unit]\nDescription=Test of {name}\n{unit}\n[Service]\nExecStart={line}\n{service}\n{install}"
        (self.units / f"{name}.service").write_text(text)
        self.systemctl("daemon-reload")
        return name

    def journal(self, unit: str) -> str:
        return self.run(f"journalctl --user -u {unit} --no-pager -o cat").out.decode()


@pytest.fixture
def login(lab: Lab):
    with connected(lab) as connection:
        yield Login(lab, connection)


def test_start_and_stop(login: Login):
    unit = login.unit("plain")
    assert login.systemctl(f"is-active {unit}") == (3, b"inactive\n", b"")
    before = time.monotonic_ns() // 1000
    assert login.systemctl(f"start {unit}").rc == 0
    assert login.systemctl(f"is-active {unit}.service") == (0, b"active\n", b"")
    pid, entered, invocation = login.show(unit, "MainPID", "ActiveEnterTimestampMonotonic", "InvocationID")
    assert processes.started(int(pid))
    assert before <= int(entered) <= time.monotonic_ns() // 1000
    assert re.fullmatch("[0-9a-f]{32}", invocation)
    assert login.systemctl(f"start {unit}").rc == 0
    assert login.show(unit, "MainPID") == [pid]
    assert login.systemctl(f"stop {unit}").rc == 0
    assert not processes.started(int(pid))
    assert login.show(unit, "ActiveState", "SubState", "Result", "MainPID") == ["inactive", "dead", "success", "0"]


def test_restart_is_a_new_process_and_resets_the_count(login: Login):
    unit = login.unit("again", service="Restart=always\nRestartSec=10ms\nStartLimitBurst=10")
    login.systemctl(f"start {unit}")
    (first,) = login.show(unit, "MainPID")
    login.run(f"kill -9 {first}")
    eventually(lambda: login.show(unit, "NRestarts", "ActiveState") == ["1", "active"])
    assert login.show(unit, "MainPID") != [first]
    assert login.systemctl(f"restart {unit}").rc == 0
    assert login.show(unit, "NRestarts") == ["0"]
    login.systemctl(f"stop {unit}")


def test_a_crash_loop_ends_at_the_start_limit(login: Login):
    limit = "StartLimitBurst=3\nStartLimitIntervalSec=1h"
    unit = login.unit("crash", "echo dying; exit 5", "Restart=always\nRestartSec=20ms", limit)
    assert login.systemctl(f"start {unit}").rc == 0  # Type=simple: started is not alive
    eventually(lambda: login.show(unit, "ActiveState") == ["failed"])
    names = ("SubState", "Result", "NRestarts", "ExecMainCode", "ExecMainStatus", "MainPID")
    assert login.show(unit, *names) == ["failed", "exit-code", "3", "1", "5", "0"]
    journal = login.journal(unit)
    assert journal.count("dying") == 3
    assert "Main process exited, code=exited, status=5/n/a" in journal
    assert "Start request repeated too quickly." in journal
    again = login.systemctl(f"start {unit}")
    assert again.rc == 1
    assert b"attempted too often" in again.err
    assert login.systemctl(f"is-failed {unit}").rc == 0
    assert login.systemctl("--failed --no-legend list-units").out.startswith(b"  crash.service loaded failed failed")
    login.systemctl(f"reset-failed {unit}")
    assert login.show(unit, "ActiveState", "Result", "NRestarts") == ["inactive", "success", "0"]
    assert login.systemctl(f"start {unit}").rc == 0


def test_restart_always_waits_restart_sec_also_after_a_clean_exit(login: Login):
    unit = login.unit("slow", "exit 0", "Restart=always\nRestartSec=1h")
    login.systemctl(f"start {unit}")
    eventually(lambda: login.show(unit, "SubState") == ["auto-restart"])
    assert login.show(unit, "ActiveState", "Result", "MainPID") == ["activating", "success", "0"]
    assert login.systemctl(f"stop {unit}").rc == 0
    assert login.show(unit, "ActiveState", "SubState") == ["inactive", "dead"]


def test_a_failing_preparation_fails_the_start(login: Login):
    unit = login.unit("pre", service="ExecStartPre=-/bin/false\nExecStartPre=/bin/sh -c 'echo no; exit 4'")
    failed = login.systemctl(f"start {unit}")
    assert failed.rc == 1
    assert b"Job for pre.service failed because the control process exited with error code." in failed.err
    assert login.show(unit, "ActiveState", "Result", "MainPID") == ["failed", "exit-code", "0"]
    assert "no\n" in login.journal(unit)


def test_environment_folders_and_specifiers(login: Login):
    (login.home / "given.env").write_text("# comment\nFROM_FILE='two words'\nOVER=file\n")
    work = login.home / "work dir"
    work.mkdir(exist_ok=True)
    service = f"""\
Environment="SET=a b" OVER=unit HOME_IS=%h
EnvironmentFile=%h/given.env
EnvironmentFile=-%h/missing.env
WorkingDirectory={work}"""
    unit = login.unit("env@", "exit 0", service, wanted=False)
    script = "echo ${SET} $OVER ${FROM_FILE} ${HOME_IS} '%i' '%n' '%t' 50%% $$0; pwd"
    path = login.units / f"{unit}.service"
    path.write_text(re.sub("ExecStart=.*", lambda _: f'ExecStart=/bin/sh -c "{script}"', path.read_text()))
    login.systemctl("daemon-reload")
    assert login.systemctl("start env@one").rc == 0
    eventually(lambda: login.show("env@one", "ActiveState") == ["inactive"])
    run = login.home.parent / "run"
    expected = f"a b file two words {login.home} one env@one.service {run} 50% /bin/sh\n{work}\n"
    assert expected in login.journal("env@one")


def test_a_missing_environment_file_fails_the_start(login: Login):
    unit = login.unit("noenv", service="EnvironmentFile=%h/nowhere")
    assert b"unavailable resources" in login.systemctl(f"start {unit}").err
    assert login.show(unit, "Result") == ["resources"]


@pytest.mark.parametrize(("line", "status"), [("ExecStart=/no/such", "203"), ("WorkingDirectory=/no/such", "200")])
def test_what_does_not_get_to_run_has_systemd_s_exit_status(login: Login, line: str, status: str):
    unit = login.unit("unstartable", service=line)
    assert login.systemctl(f"start {unit}").rc == 0
    eventually(lambda: login.show(unit, "ActiveState") == ["failed"])
    assert login.show(unit, "ExecMainStatus") == [status]
    unit = login.unit("unstartable", service=f"{line}\nType=exec")
    assert login.systemctl(f"start {unit}").rc == 1


def test_a_mixed_stop_tells_the_main_process_and_kills_the_rest(login: Login):
    (login.home / "told").unlink(missing_ok=True)
    child = "trap 'echo child >> told' TERM; while :; do sleep 0.05; done"
    main = f"({child}) & trap 'echo main >> told; exit 0' TERM; echo child $!; while :; do sleep 0.05; done"
    unit = login.unit("mixed", main, "KillMode=mixed\nTimeoutStopSec=5")
    login.systemctl(f"start {unit}")
    eventually(lambda: "child" in login.journal(unit))
    (pid,) = re.findall(r"child (\d+)", login.journal(unit))
    assert login.systemctl(f"stop {unit}").rc == 0
    assert (login.home / "told").read_text() == "main\n"
    assert not processes.started(int(pid))
    assert login.show(unit, "ActiveState", "Result") == ["inactive", "success"]


def test_who_does_not_stop_is_killed_after_the_timeout(login: Login):
    unit = login.unit("stubborn", "trap '' TERM; while :; do sleep 0.05; done", "KillMode=mixed\nTimeoutStopSec=300ms")
    login.systemctl(f"start {unit}")
    (pid,) = login.show(unit, "MainPID")
    assert login.systemctl(f"stop {unit}").rc == 0
    assert not processes.started(int(pid))
    assert login.show(unit, "ActiveState", "Result", "ExecMainCode", "ExecMainStatus") == [
        "failed",
        "timeout",
        "2",
        "9",
    ]


def test_what_a_dead_service_leaves_running_is_ended(login: Login):
    unit = login.unit("leaver", "setsid sleep 1000 & echo left $!; exit 1")
    login.systemctl(f"start {unit}")
    eventually(lambda: login.show(unit, "ActiveState") == ["failed"])
    (pid,) = re.findall(r"left (\d+)", login.journal(unit))
    assert not processes.started(int(pid))


def test_enable_and_disable(login: Login):
    unit = login.unit("enabled")
    assert login.systemctl(f"is-enabled {unit}") == (1, b"disabled\n", b"")
    made = login.systemctl(f"enable {unit}")
    link = login.units / "default.target.wants" / "enabled.service"
    assert (made.rc, made.err) == (0, f"Created symlink {link} → {login.units / 'enabled.service'}.\n".encode())
    assert login.systemctl(f"enable {unit}") == (0, b"", b"")
    assert login.systemctl(f"is-enabled {unit}") == (0, b"enabled\n", b"")
    assert login.show(unit, "UnitFileState", "ActiveState") == ["enabled", "inactive"]
    assert login.systemctl(f"enable --now {unit}").rc == 0
    assert login.systemctl(f"disable --now {unit}").rc == 0
    assert login.show(unit, "UnitFileState", "ActiveState") == ["disabled", "inactive"]
    static = login.unit("static", wanted=False)
    assert login.systemctl(f"is-enabled {static}") == (0, b"static\n", b"")


def test_a_unit_that_changed_on_disk_wants_a_reload(login: Login):
    unit = login.unit("edited")
    login.systemctl(f"start {unit}")
    assert login.show(unit, "NeedDaemonReload") == ["no"]
    path = login.units / f"{unit}.service"
    path.write_text(path.read_text().replace("Test of", "Edited"))
    assert login.show(unit, "NeedDaemonReload", "Description") == ["yes", "Test of edited"]
    assert b"changed on disk" in login.systemctl(f"restart {unit}").err
    login.systemctl("daemon-reload")
    assert login.show(unit, "NeedDaemonReload", "Description", "ActiveState") == ["no", "Edited edited", "active"]
    path.unlink()
    login.systemctl("daemon-reload")
    assert login.show(unit, "LoadState", "ActiveState") == ["not-found", "active"]
    login.systemctl(f"stop {unit}")


def test_a_unit_that_is_not_there(login: Login):
    names = ("LoadState", "ActiveState", "SubState", "UnitFileState", "FragmentPath", "MainPID", "NRestarts")
    assert login.show("nowhere", *names) == ["not-found", "inactive", "dead", "", "", "0", "0"]
    started = login.systemctl("start nowhere")
    assert (started.rc, started.err) == (5, b"Failed to start nowhere.service: Unit nowhere.service not found.\n")
    assert login.systemctl("stop nowhere").rc == 5
    assert login.systemctl("status nowhere").rc == 4
    assert login.systemctl("is-active nowhere") == (3, b"inactive\n", b"")
    assert login.systemctl("is-enabled nowhere") == (4, b"not-found\n", b"")
    assert login.systemctl("enable nowhere").rc == 1
    assert b"is not valid" in login.systemctl("start ../../x").err


def test_a_unit_that_makes_no_sense(login: Login):
    unit = login.unit("broken", service="Restart=sometimes")
    assert login.show(unit, "LoadState") == ["bad-setting"]
    failed = login.systemctl(f"start {unit}")
    assert failed.rc == 1
    assert b"Restart=: sometimes" in failed.err


def test_show_prints_in_systemd_s_order_or_values_alone(login: Login):
    unit = login.unit("shown", service="TimeoutStopSec=90\nRestartSec=5")
    asked = f"show {unit} -p ActiveState,TimeoutStopUSec -p RestartUSec"
    assert login.systemctl(asked).out == b"RestartUSec=5s\nTimeoutStopUSec=1min 30s\nActiveState=inactive\n"
    assert login.systemctl(f"{asked} --value").out == b"5s\n1min 30s\ninactive\n"
    path = login.units / "shown.service"
    assert login.show(unit, "FragmentPath") == [str(path)]
    assert login.systemctl(f"cat {unit}").out == f"# {path}\n{path.read_text()}".encode()


def test_the_journal(login: Login):
    unit = login.unit("talk", "echo one; echo two >&2; printf three")
    login.systemctl(f"start {unit}")
    eventually(lambda: "Deactivated" in login.journal(unit))
    started, *said, ended = login.journal(unit).splitlines()
    assert (started, said) == ("Started talk.service - Test of talk.", ["one", "two", "three"])
    assert ended == "talk.service: Deactivated successfully."
    tail = login.run(f"journalctl --user -u {unit} -n 2 --no-pager -o short-iso").out.decode().splitlines()
    assert len(tail) == 2
    stamp = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d"
    assert re.fullmatch(rf"{stamp} spark-1 sh\[\d+\]: three", tail[0])
    journal = f"journalctl --user -u {unit} --no-pager -o cat"
    assert login.run(f"{journal} -g '^TWO|^th'").out == b"three\n", "a capital letter asks for the case"
    assert login.run(f"{journal} -g '^two|^th'").out == b"two\nthree\n"
    assert login.run(f"{journal} -q -g nothing") == (1, b"", b"")
    assert login.run(f"{journal} --since '1 min ago'").out == login.run(journal).out
    assert login.run(f"{journal} -q --since '2200-01-01 12:00'").out == b""
    assert login.run(f"{journal} --since whenever").rc == 1
    followed = login.run(f"(sleep 0.5; systemctl --user restart {unit}) & timeout 2 {journal} -f -n 1").out.decode()
    assert followed.splitlines()[:3] == [ended, started, "one"]
    assert login.run("journalctl --user -u nothing --no-pager").out == b"-- No entries --\n"
    assert login.run("journalctl --user --wrong").rc == 1


def test_status_reads_as_systemd_s(login: Login):
    unit = login.unit("state")
    login.systemctl(f"start {unit}")
    eventually(lambda: "serving" in login.journal(unit))
    text = login.systemctl(f"status {unit} --no-pager").out.decode()
    assert "● state.service - Test of state" in text
    assert "Active: active (running) since " in text
    assert "serving" in text
    login.systemctl(f"stop {unit}")
    assert login.systemctl(f"status {unit}").rc == 3


def test_two_users_of_one_unit_at_once(login: Login, lab: Lab):
    unit = login.unit("contested", service="StartLimitBurst=0")
    login.systemctl(f"start {unit}")
    orders = " & ".join(f"systemctl --user {verb} {unit}" for verb in ("restart", "stop", "start", "restart") * 3)
    login.run(f"{orders} & wait")
    assert login.systemctl(f"restart {unit}").rc == 0
    assert login.show(unit, "ActiveState") == ["active"]
    assert login.systemctl(f"stop {unit}").rc == 0


def test_only_the_user_s_own_manager_is_simulated(login: Login):
    refused = login.run("systemctl is-active ssh")
    assert refused.rc == 1
    assert b"not been booted with systemd" in refused.err
    assert login.systemctl("edit x").rc == 1
    assert login.systemctl("is-system-running").out == b"running\n"


def test_lingering(login: Login):
    assert login.run("loginctl show-user $USER -p Linger").out == b"Linger=no\n"
    assert login.run("loginctl enable-linger").rc == 0
    assert login.run("loginctl show-user $USER --property=Linger --value").out == b"yes\n"
    assert login.run("loginctl disable-linger $USER").rc == 0
    assert login.run("loginctl show-user nobody-known").rc == 1
