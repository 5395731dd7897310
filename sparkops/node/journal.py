"""What a unit has logged, run by run."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sparkops.node.systemd import Manager

MANAGER = "systemd"
# Read at most; a served copy logs a line for each request, and those that went well are dropped.
LINES = 4000
KEPT = 300
TIMEOUT = 30.0
# The lines of a start that tell how it went, for when so much was logged since that the tail no longer holds them.
START_LINES = "MoE backend out of|GPU KV cache size|Maximum concurrency for|Loading weights took|Application startup"


class Run:
    """What one start of a unit has logged. whole: its first line is there."""

    def __init__(self, whole: bool) -> None:
        self.whole = whole
        self.lines: list[str] = []


def runs(manager: Manager, unit: str, invocation: str) -> list[Run]:
    """The runs that the journal's end holds, oldest first; [] when this user may not read it or there is none.

    invocation: systemd's InvocationID of the last run, "" when not known.
    """
    found = split(entries(read(manager, "-n", str(LINES), "-u", unit)))
    if found and not found[-1].whole and invocation:
        head = entries(read(manager, "-g", START_LINES, f"_SYSTEMD_INVOCATION_ID={invocation}"))
        told = [message for _, message in head[:KEPT]]
        found[-1].lines = told + [line for line in found[-1].lines if line not in told]
        # It finds all of a start's lines, so those that are not there were not logged.
        found[-1].whole = bool(told)
    return found


def read(manager: Manager, *words: str) -> str:
    """journalctl's text; "" when it does not understand or does not answer."""
    # --all: a line with a carriage return, of a progress bar, counts as binary data.
    argv = ["journalctl", *manager.words, "--no-pager", "-q", "--all", "-o", "short-iso", *words]
    return manager.node.run(argv, env=manager.environment(), timeout=TIMEOUT).out


def entries(text: str) -> list[tuple[str, str]]:
    """(identifier, message) of journalctl -o short-iso; a message's further lines are entries of their own."""
    found: list[tuple[str, str]] = []
    for line in text.splitlines():
        words = line.split(" ", 3)
        if len(words) > 2 and words[0][:2].isdigit() and words[0][10:11] == "T" and words[2].endswith(":"):
            found.append((words[2].partition("[")[0].rstrip(":"), words[3] if len(words) > 3 else ""))
        elif found and not line.startswith("-- "):
            found.append((found[-1][0], line.strip()))
    return found


def split(said: list[tuple[str, str]]) -> list[Run]:
    """Entries by run: systemd says Starting (not for every type of unit), then Started."""
    found: list[Run] = []
    opened = False
    for identifier, message in said:
        if identifier == MANAGER and message.startswith("Starting "):
            found.append(Run(whole=True))
            opened = True
        elif identifier == MANAGER and message.startswith("Started "):
            if not opened:
                found.append(Run(whole=True))
            opened = False
        elif not found:
            found.append(Run(whole=False))
        if not routine(message):
            found[-1].lines.append(message)
    return found


def routine(message: str) -> bool:
    """Whether it is the access line of a request that went well, or the figures that vLLM tells every 10 s."""
    return message.endswith('HTTP/1.1" 200 OK') or " throughput: " in message
