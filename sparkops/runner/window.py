"""A window: the tasks that are sent to a node together, and what comes back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from sparkops.playbook.compile import Compiled
from sparkops.playbook.files import Files
from sparkops.transport.session import Session

PIECE = 256 * 1024


@dataclass(frozen=True)
class Answer:
    """How one step ended on the node; as it said it."""

    state: str
    msg: str
    diff: str | None
    result: dict[str, Any]
    seconds: float


def frames(tasks: list[Compiled]) -> list[dict[str, Any]]:
    """The tasks' steps in order. A loop's items but the last are marked `more`: they all run."""
    found = []
    for compiled in tasks:
        last = len(compiled.steps) - 1
        found += [{**step.frame, "more": True} if at < last else step.frame for at, step in enumerate(compiled.steps)]
    return found


def execute(
    session: Session,
    tasks: list[Compiled],
    files: Files,
    greet: Callable[[dict[str, Any]], None],
    begin: Callable[[Compiled], None],
    progress: Callable[[Compiled, dict[str, Any]], None],
) -> Iterator[tuple[Compiled, list[Answer]]]:
    """Send the window, then give each task with its steps' answers as it ends; tasks after a failure never come.

    Skipped tasks (no steps) come in their place. Raises ConnectionLost.
    """
    owners = [compiled for compiled in tasks for _ in compiled.steps]
    if owners:
        session.send({"op": "window", "tasks": frames(tasks)})
        session.waits += 1
    answers: list[Answer] = []
    waiting = iter(tasks)
    for compiled in waiting:
        if not compiled.steps:
            yield compiled, []
            continue
        begin(compiled)
        while len(answers) < len(compiled.steps):
            message = session.receive()
            if message["ev"] in ("hello", "refused"):
                greet(message)
            elif message["ev"] == "result":
                fields = ("state", "msg", "diff", "result", "seconds")
                answers.append(Answer(*(message[key] for key in fields)))
            elif message["ev"] == "progress":
                progress(compiled, message)
            elif message["ev"] == "need":
                _send_file(session, files, message["digest"])
            elif message["ev"] == "done":
                # The node stopped: this task, if it has begun, ends with what it has.
                if answers:
                    yield compiled, answers
                return
        yield compiled, answers
        answers = []
    if owners:
        while session.receive()["ev"] != "done":
            pass


def _send_file(session: Session, files: Files, digest: str) -> None:
    with files.by_digest(digest).open("rb") as file:
        while piece := file.read(PIECE):
            session.send({"op": "piece"}, piece)
            session.flush()
        # An empty piece: the file is shorter than it was, so the node must not wait for more.
        session.send({"op": "piece"})
        session.flush()
