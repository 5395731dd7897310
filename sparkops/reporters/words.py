"""How events read, as text: pure functions that the plain and the live reporter share."""

from __future__ import annotations

import json

from sparkops.events import STATES, Handler, HostEnd, HostStart, Notice, Preflight, Progress, RunStart, Task

# Shown without -v: what moved, broke, or can't be known yet.
LOUD = frozenset({"changed", "failed", "unreachable", "rescued", "ignored", "unknown"})
# What a verdict of the preflight is shown as.
VERDICTS = {"pass": "ok", "warn": "notice", "fail": "failed"}
# As many nodes are named in a line of it.
NAMED = 3
STATE_WIDTH = max(map(len, STATES))

_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}


def printable(text: str) -> str:
    """Text from a node without what would move the cursor, colour the screen or can't be encoded."""
    encodable = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return encodable.replace("\r\n", "\n").translate(_CONTROLS)


def duration(seconds: float) -> str:
    """0.4 s, 12.3 s, 2 min 05 s, 1 h 02 min."""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def clock(seconds: float) -> str:
    """A duration for a narrow column: 0:07, 12:34, 1:02:03."""
    minutes, rest = divmod(max(0, round(seconds)), 60)
    if minutes < 60:
        return f"{minutes}:{rest:02d}"
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"


def amount(value: float, unit: str) -> str:
    """A quantity of an event: bytes in binary units, seconds as a duration, others counted."""
    if unit == "s":
        return duration(value)
    if unit != "bytes":
        return f"{value:,.0f} {unit}"
    size, name = _scale(value)
    return f"{_number(value / size, name)} {name}"


def ratio(done: float, total: float, unit: str) -> str:
    """Done and total in one unit: 1.2/20.4 GiB, 120/189 packages."""
    if unit != "bytes":
        return f"{done:,.0f}/{total:,.0f} {unit}"
    size, name = _scale(total)
    return f"{_number(done / size, name)}/{_number(total / size, name)} {name}"


def rate(speed: float, unit: str) -> str:
    """A speed a second: 118 MiB/s, 12/s, 0.5/s."""
    if unit == "bytes":
        size, name = _scale(speed)
        return f"{speed / size:.0f} {name}/s"
    return f"{speed:.1f}/s" if speed < 10 else f"{speed:.0f}/s"


def progress(event: Progress) -> str:
    """1.2/2.0 GiB, 120/189 packages, 12.0 s of 5 min 00 s; without a total only what is done."""
    if event.total is None:
        return amount(event.done, event.unit)
    if event.unit == "s":
        return f"{duration(event.done)} of {duration(event.total)}"
    return ratio(event.done, event.total, event.unit)


def step(event: Progress, width: int = 0) -> str:
    """`spark-1  ...  Build the engine: 120/189 packages, torch`."""
    far = f"{progress(event)}, {event.msg}" if event.msg else progress(event)
    return printable(f"{event.host:<{width}}  {'...':<{STATE_WIDTH}}  {event.task}: {far}")


def host_start(event: HostStart, width: int = 0) -> str:
    """`spark-1  start  Provision (17 tasks)`."""
    return printable(f"{event.host:<{width}}  {'start':<{STATE_WIDTH}}  {event.play} ({count(event.tasks, 'task')})")


def task(event: Task | Handler, width: int = 0) -> str:
    """`spark-1  changed  Install packages (1.2 s): msg`; a message of several lines goes below, indented."""
    label = event.task or event.module
    line = f"{event.host:<{width}}  {event.state:<{STATE_WIDTH}}  {label} ({duration(event.seconds)})"
    return _with_message(printable(line), event.msg)


def result(event: Task | Handler) -> str:
    """The result as indented JSON, for -vv."""
    text = json.dumps(event.result, indent=2, ensure_ascii=False, default=str)
    return _indented(printable(text))


def host_end(event: HostEnd, width: int = 0, *, known: bool = False) -> str:
    """A host's last line in a play; `known` leaves out a message that its failed task has just given."""
    state = {"ok": "done"}.get(event.state, event.state)
    line = f"{event.host:<{width}}  {state:<{STATE_WIDTH}}  {event.play} ({duration(event.seconds)})"
    text = _with_message(printable(line), "" if known else event.msg)
    return f"{text}\n{_indented('hint: ' + printable(event.hint))}" if event.hint else text


def notice(event: Notice) -> str:
    """`warning: spark-1: msg`."""
    return printable(f"warning: {event.host}: {event.msg}" if event.host else f"warning: {event.msg}")


def preflight(event: Preflight, *, everything: bool) -> list[tuple[str, str]]:
    """(line, its kind) of the table of checks, without `everything` only of those that do not pass; a remedy goes
    below its check.
    """
    shown = [one for one in event.checks if everything or one["verdict"] != "pass"]
    count_ = len({host for one in event.checks for host in one["hosts"]})
    rows = [(one["verdict"], one["check"], _hosts(one["hosts"], count_), one["found"]) for one in shown]
    widths = [max(map(len, column)) for column in list(zip(*rows, strict=True))[:3]]
    indent = " " * (sum(widths) + 6)
    lines = []
    for one, row in zip(shown, rows, strict=True):
        text = "  ".join([*(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False)), row[3]])
        text += f"\n{indent}-> {one['remedy']}" if one["remedy"] else ""
        lines.append((printable(text), VERDICTS[one["verdict"]]))
    return lines


def _hosts(names: list[str], of: int) -> str:
    """The names, a few of them, or how many there are when it is all."""
    if len(names) == of > 1:
        return f"all {of} nodes"
    return ", ".join(names) if len(names) <= NAMED else f"{', '.join(names[:NAMED])} and {len(names) - NAMED} more"


def headline(event: RunStart) -> str:
    """What is about to run, and where."""
    mode = "check: nothing is changed there" if event.check else f"up to {event.forks} at a time"
    playbook = printable(event.playbook.rsplit("/", 1)[-1])
    return f"{playbook} on {count(len(event.hosts), 'node')} ({mode})"


def count(number: int, noun: str) -> str:
    """1 node, 2 nodes."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _with_message(line: str, msg: str) -> str:
    msg = printable(msg.strip())
    if not msg:
        return line
    return f"{line}\n{_indented(msg)}" if "\n" in msg else f"{line}: {msg}"


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())


def _scale(size: float) -> tuple[int, str]:
    units = ("B", "KiB", "MiB", "GiB", "TiB")
    power = 0
    while abs(size) >= 1024 ** (power + 1) and power < len(units) - 1:
        power += 1
    return 1024**power, units[power]


def _number(value: float, name: str) -> str:
    return f"{value:.0f}" if name == "B" else f"{value:.1f}"
