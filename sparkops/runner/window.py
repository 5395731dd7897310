"""A window: the tasks that are sent to a node together, and what comes back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from sparkops.playbook.compile import Compiled, Step
from sparkops.playbook.files import Files
from sparkops.runner.results import Answer, of_action
from sparkops.transport.session import Session

# Bytes of a file in one frame: with its head just eight packets of SSH's.
PIECE = 8 * 32704 - 128
Greet = Callable[[dict[str, Any]], None]


def frames(tasks: list[Compiled]) -> list[dict[str, Any]]:
    """The tasks' steps in order. A loop's items but the last are marked `more`: they all run."""
    found = []
    for compiled in tasks:
        sent = [step for step in compiled.steps if step.acted is None]
        found += [{**step.frame, "more": True} if at < len(sent) - 1 else step.frame for at, step in enumerate(sent)]
    return found


def one_by_one(compiled: Compiled) -> bool:
    """Whether its steps are carried out each for itself: tried again, with pauses, or through other hosts' sessions."""
    if not compiled.steps or compiled.error:
        return False
    return compiled.task.until is not None or compiled.delegated or bool(compiled.task.loop_control.pause)


def waits_alone(compiled: Compiled) -> bool:
    """Whether nothing may be sent before or behind it: one by one, or a word to the runner."""
    acted = [step.acted for step in compiled.steps if step.acted is not None]
    return any(one.control or one.pause is not None for one in acted) or one_by_one(compiled)


def ends(compiled: Compiled) -> bool:
    """Whether nothing may be sent behind it: the controller judges how it ended, or knows that it has failed; or it
    gives facts.
    """
    acted = [step.acted for step in compiled.steps if step.acted is not None]
    failed = any(one.state == "failed" for one in acted) and not compiled.ignore
    return failed or any(one.cached for one in acted) or (bool(compiled.steps) and compiled.task.judged)


class Window:
    """Sends tasks and gives each with its steps' answers as it ends. What the controller has done comes in its place.

    greet: is given the executor's answer to opening. begin: is told of a task before it runs.
    """

    def __init__(
        self,
        session: Session,
        files: Files,
        greet: Greet,
        begin: Callable[[Compiled], None],
        progress: Callable[[Compiled, dict[str, Any]], None],
    ) -> None:
        self._session = session
        self._files = files
        self._greet = greet
        self._begin = begin
        self._progress = progress
        self._stopped = False

    def execute(self, tasks: list[Compiled]) -> Iterator[list[Answer]]:
        """Each task's answers, [] for one that is skipped; tasks after one that failed never come.

        Raises ConnectionLost, LeaseHeld. Call `finish` when no more is wanted.
        """
        self._stopped = all(compiled.local for compiled in tasks)
        if not self._stopped:
            self._session.send({"op": "window", "tasks": frames(tasks)})
            self._session.waits += 1
        for compiled in tasks:
            if not compiled.local:
                self._begin(compiled)
            answers = [answer for step in compiled.steps if (answer := self._answer(compiled, step)) is not None]
            if compiled.steps and not answers:
                return
            yield answers

    def sync(self) -> None:
        """Have the node take in what was queued, and say so."""
        self._session.send({"op": "window", "tasks": []})
        self._session.waits += 1
        self._stopped = False
        self.finish()

    def finish(self) -> None:
        """Take in the window's end, so that the next one starts clean."""
        while not self._stopped:
            self._stopped = self._receive()["ev"] == "done"

    def _answer(self, compiled: Compiled, step: Step) -> Answer | None:
        """How one step ended; None when the node has stopped before it."""
        if step.acted is not None:
            return of_action(step.acted)
        while not self._stopped:
            message = self._receive()
            if message["ev"] == "result":
                return Answer(*(message[key] for key in ("state", "msg", "diff", "result", "seconds")))
            if message["ev"] in ("progress", "lines"):
                self._progress(compiled, message)
            elif message["ev"] == "need":
                if "files" in message:
                    self._send_files(message["files"])
                else:
                    self._send_file(message["digest"], message["size"])
            self._stopped = message["ev"] == "done"
        return None

    def _receive(self) -> dict[str, Any]:
        message = self._session.receive()
        if message["ev"] in ("hello", "refused"):
            self._greet(message)
        return message

    def _send_file(self, digest: str, size: int) -> None:
        self._send_files([(digest, size)])

    def _send_files(self, wanted: list[tuple[str, int]]) -> None:
        """The files' bytes, one behind the other, in pieces; an empty piece when one ends before its size."""
        whole, buffer = True, b""
        for digest, size in wanted:
            left = size
            try:
                with self._files.by_digest(digest).open("rb") as file:
                    while left and (piece := file.read(min(PIECE - len(buffer), left))):
                        left -= len(piece)
                        buffer = buffer + piece if buffer else piece
                        if len(buffer) == PIECE:
                            self._send_piece(buffer)
                            buffer = b""
            except OSError:
                # It was there when the run began; the node fails the task as for a file that became shorter.
                pass
            if left:
                whole = False
                break
        if buffer:
            self._send_piece(buffer)
        if not whole:
            self._send_piece(b"")

    def _send_piece(self, piece: bytes) -> None:
        self._session.send({"op": "piece"}, piece)
        self._session.flush()
