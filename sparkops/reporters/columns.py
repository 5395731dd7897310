"""The cells of a node's line in the live picture."""

from __future__ import annotations

from rich.progress import ProgressColumn, Task
from rich.spinner import Spinner
from rich.table import Column
from rich.text import Text

from sparkops.reporters import words

SIGNS = {"ok": ("✓", "green"), "failed": ("✗", "bold red"), "unreachable": ("✗", "bold magenta")}


class Sign(ProgressColumn):
    """Waiting, at work, or how it ended."""

    def __init__(self) -> None:
        super().__init__(Column(no_wrap=True, width=1))
        self._spinner = Spinner("dots", style="cyan")

    def render(self, task: Task) -> Text:
        if task.fields["state"]:
            return Text(*SIGNS[task.fields["state"]])
        if not task.started:
            return Text("·", "dim")
        frame = self._spinner.render(task.get_time())
        return frame if isinstance(frame, Text) else Text("*")


class Quantity(ProgressColumn):
    """A long step's amount, its rate over the last half minute, and the time that is left at that rate."""

    def __init__(self) -> None:
        super().__init__(Column(no_wrap=True, justify="right"))

    def render(self, task: Task) -> Text:
        unit = task.fields["unit"]
        if not unit or task.total is None:
            return Text(task.fields["quantity"])
        parts = [words.ratio(task.completed, task.total, unit)]
        if task.speed:
            parts.append(words.rate(task.speed, unit))
        if task.time_remaining is not None:
            parts.append(f"ETA {words.clock(task.time_remaining)}")
        return Text(" ".join(parts))


class Elapsed(ProgressColumn):
    """How long the task under way has taken, or the whole play when it has ended."""

    def __init__(self) -> None:
        super().__init__(Column(no_wrap=True, justify="right", min_width=5))

    def render(self, task: Task) -> Text:
        seconds, since = task.fields["seconds"], task.fields["since"]
        if seconds is None and since is None:
            return Text("")
        return Text(words.clock(task.get_time() - since if seconds is None else seconds), "dim")
