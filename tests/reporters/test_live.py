"""The live picture, as a terminal gets it; `screen` plays what was written into the lines that are left to see."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from time import monotonic

import pytest
from rich.console import Console

from sparkops.events import HostEnd, HostStart, Progress, RunStart, TaskStart
from sparkops.reporters.board import Board
from sparkops.reporters.live import LiveReporter
from tests.reporters.samples import RUN, Terminal, task

CONTROL = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])")


def screen(written: str) -> list[str]:
    """The lines on a terminal after what was written: cursor up, erase line, carriage return and newline."""
    lines, row, column, at = [""], 0, 0, 0
    while at < len(written):
        if match := CONTROL.match(written, at):
            at = match.end()
            number = int(match[1] or 1) if match[1].isdigit() or not match[1] else 0
            if match[2] == "A":
                row = max(0, row - number)
            elif match[2] == "K":
                lines[row] = ""
            continue
        letter = written[at]
        at += 1
        if letter == "\n":
            row, column = row + 1, 0
            if row == len(lines):
                lines.append("")
        elif letter == "\r":
            column = 0
        else:
            lines[row] = lines[row].ljust(column)[:column] + letter + lines[row][column + 1 :]
            column += 1
    return [line.rstrip() for line in lines]


@pytest.fixture(autouse=True)
def _eighty_columns(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, value in {"COLUMNS": "80", "LINES": "24", "TERM": "xterm-256color"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_COLOR", raising=False)
    yield


def board_lines(board: Board, console: Console) -> list[str]:
    with console.capture() as capture:
        for renderable in board.get_renderables():
            console.print(renderable)
    return [CONTROL.sub("", line).rstrip() for line in capture.get().splitlines()]


def board(*hosts: str, clock: Callable[[], float] | None = None) -> tuple[Board, Console]:
    console = Console(
        file=Terminal(), width=80, height=24, force_terminal=True, color_system=None, get_time=clock or monotonic
    )
    made = Board(console)
    made.take(RunStart("provision", list(hosts), check=False, forks=5))
    return made, console


def test_lines_stay_and_the_picture_goes() -> None:
    terminal = Terminal()
    with LiveReporter(terminal, diff=True) as reporter:
        for event in RUN:
            reporter(event)
    lines = screen(terminal.getvalue())
    assert lines[0] == "provision.yml on 2 nodes (up to 5 at a time)"
    assert lines[1] == "spark-1  changed      Install packages (1.2 s)"
    assert lines[2:7] == ["--- a", "+++ b", "@@ -1 +1 @@", "-old", "+new"]
    assert "    hint: install driver 580" in lines
    table = lines[lines.index("    hint: install driver 580") + 1 :]
    assert table == [
        "",
        "node     ok  changed  failed  skipped  unreachable",
        "spark-1   1        1       0        0            0",
        "spark-2   0        0       1        0            0",
        "1 task changed spark-1; 1 of 2 nodes failed: spark-2",
        "",
    ]


def test_an_interrupt_leaves_nothing_half_drawn() -> None:
    terminal = Terminal()
    with pytest.raises(KeyboardInterrupt), LiveReporter(terminal) as reporter:
        for event in RUN[:4]:
            reporter(event)
        raise KeyboardInterrupt
    assert [line for line in screen(terminal.getvalue()) if line] == ["provision.yml on 2 nodes (up to 5 at a time)"]
    assert terminal.getvalue().count("\x1b[?25h") == 1, "the cursor is shown again"


def test_nothing_is_drawn_before_the_run_starts() -> None:
    """A password may be asked for then."""
    terminal = Terminal()
    with LiveReporter(terminal):
        pass
    assert terminal.getvalue() == ""


def test_a_node_waits_then_works_then_has_ended() -> None:
    made, console = board("spark-1", "spark-2")
    assert [line.split()[:3] for line in board_lines(made, console)] == [["·", f"spark-{n}", "waiting"] for n in (1, 2)]
    made.take(HostStart("spark-1", "Provision", 17))
    made.take(TaskStart("spark-1", "Provision", "Install packages", "package"))
    made.take(task("spark-1"))
    made.take(TaskStart("spark-1", "Provision", "Build the engine", "python_venv"))
    assert "spark-1 2/17 Build the engine" in board_lines(made, console)[0]
    made.take(HostEnd("spark-1", "Provision", "ok", 64))
    line = board_lines(made, console)[0]
    assert line.startswith("✓ spark-1") and line.endswith("1:04")


def test_a_long_step_has_amount_rate_and_time_left() -> None:
    now = 100.0
    made, console = board("spark-1", clock=lambda: now)
    made.take(HostStart("spark-1", "Provision", 17))
    made.take(TaskStart("spark-1", "Provision", "Build", "python_venv"))
    for now in (100.0, 101.0, 102.0, 103.0):
        made.take(Progress("spark-1", "Build", (now - 100) * 10, 190, "packages"))
    (line,) = board_lines(made, console)
    assert "30/190 packages 10/s ETA 0:16" in line
    assert line.endswith("0:03")
    made.take(Progress("spark-1", "Build", 2**20, 2**21, "bytes"))
    assert "1.0/2.0 MiB" in board_lines(made, console)[0]
    assert "/s" not in board_lines(made, console)[0], "a rate of packages is none of bytes"
    made.take(TaskStart("spark-1", "Provision", "Directories", "file"))
    assert "packages" not in board_lines(made, console)[0]


def test_waiting_and_unknown_totals_have_no_rate() -> None:
    made, console = board("spark-1")
    made.take(HostStart("spark-1", "Deploy", 3))
    for done in (10.0, 12.0):
        made.take(Progress("spark-1", "Healthy", done, 300, "s"))
    assert "12.0 s of 5 min 00 s" in board_lines(made, console)[0]
    made.take(TaskStart("spark-1", "Deploy", "Fetch", "x"))
    made.take(Progress("spark-1", "Fetch", 2**31, None, "bytes"))
    assert "2.0 GiB" in board_lines(made, console)[0]


def test_a_line_fits_eighty_columns_whatever_it_holds() -> None:
    made, console = board("spark-with-a-very-long-name.example.org")
    host = "spark-with-a-very-long-name.example.org"
    made.take(HostStart(host, "Provision", 170))
    made.take(TaskStart(host, "Provision", "Build [bold]the[/bold] engine\x1b[2J " * 5, "python_venv"))
    for done in (1.5, 2.5):
        made.take(Progress(host, "Build", done * 2**30, 20.4 * 2**30, "bytes"))
    (line,) = board_lines(made, console)
    assert len(line) <= 78
    assert "2.5/20.4 GiB" in line


def test_more_nodes_than_lines_shows_those_at_work_and_a_sum() -> None:
    hosts = [f"spark-{number}" for number in range(1, 65)]
    made, console = board(*hosts)
    for host in hosts[:30]:
        made.take(HostStart(host, "Provision", 3))
    made.take(HostEnd("spark-1", "Provision", "ok", 3))
    lines = board_lines(made, console)
    assert len(lines) == 19
    assert "spark-2 " in lines[0]
    assert lines[-1] == "1 of 64 nodes done, 18 shown"
