"""The program on the node: executes windows of tasks in order, and stops a window at its first failure.

Frames in: open, window, piece, notify, forget, close. Frames out: hello or
refused, result, progress, need, done.
"""

from __future__ import annotations

import os
import sys

from sparkops.node.api import Arguments, Failure, Outcome, Patch, Path, Source, Template, Tree
from sparkops.node.become import Children
from sparkops.node.frames import Closed, Link
from sparkops.node.runtime import LocalNode
from sparkops.node.state import Held, State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, SupportsBytes

    from sparkops.node.boot import Modules


def main(modules: Modules, flight: bytes = b"", keep: bool = False) -> None:
    """Serve frames on stdin and stdout until stdin ends; `flight` came before. `modules` is what a child of another
    user starts from, and with `keep` what the next run starts from.
    """
    link = Link(0, os.dup(1))
    link.feed(flight)
    # Stdout carries frames only: a module that prints must not break them.
    os.dup2(2, 1)
    executor = Executor(link, modules)
    try:
        executor.serve()
    except Closed:
        # The controller has gone. What was running has been ended; detached jobs go on.
        pass
    except Held as held:
        link.send({"ev": "refused", "by": held.by})
        return
    if keep and not executor.check:
        from sparkops.node import keeping

        # The next run need not wait for this.
        executor.state.give_back()
        keeping.keep(modules)


class Executor:
    """One connection's work on a node, as one user; other users' tasks go to children."""

    def __init__(self, link: Link, preamble: bytes | SupportsBytes) -> None:
        self.link = link
        self.preamble = preamble
        # Until it is told.
        self.check: bool = True

    def serve(self) -> None:
        """The first frame opens; the others follow in order."""
        opening, _ = self.link.receive()
        self.link.silence = opening.get("silence")
        self.state = State(os.path.expanduser(opening["state_dir"]))
        self.check = opening["check"]
        own, theirs = self.state.folder, opening["state_dir"]
        self.children = Children(self.link, self.preamble, opening.get("sudo_password"), own, theirs, self.check)
        if opening.get("lease") is not None:
            self.state.take_lease(opening["lease"])
        self.link.send(
            {
                "ev": "hello",
                "python": sys.version.split()[0],
                "home": os.path.expanduser("~"),
                "pending": self.state.pending(),
            }
        )
        while True:
            message, _ = self.link.receive()
            if message["op"] == "close":
                return
            if message["op"] == "forget":
                self.state.forget(message["scope"], message["handlers"])
            if message["op"] == "notify":
                self.state.notify(message["scope"], message["handlers"])
            if message["op"] == "window":
                self.window(message["tasks"])

    def window(self, tasks: list[dict[str, Any]]) -> None:
        """Run tasks in order up to the first failure; `done` says that nothing more comes.

        A loop's items are tasks with `more` (all but the last): as in Ansible they all run, then the window stops.
        """
        failed = item_failed = False
        for index, task in enumerate(tasks):
            self.link.check()
            result = self.children.run(task, index) if task.get("user") else self.task(task, index)
            item_failed = item_failed or result["state"] == "failed"
            if not task.get("check", self.check):
                # Written before the result leaves: a controller that dies now cannot lose the notification.
                if result["state"] == "changed" and task.get("notify"):
                    self.state.notify(task["scope"], task["notify"])
                # Its last item carries the name: it is owed still when any of them failed.
                if task.get("handler") and not item_failed:
                    self.state.forget(task["scope"], task["handler"])
            self.link.post(dict(result, ev="result", task=index))
            failed = failed or (result["state"] == "failed" and not task.get("go_on"))
            if task.get("more"):
                continue
            item_failed = False
            if failed:
                break
        self.link.send({"ev": "done"})

    def task(self, task: dict[str, Any], index: int) -> dict[str, Any]:
        """Run one task here; the answer has state, msg, diff, result, seconds."""
        import time

        started = time.monotonic()
        node = LocalNode(self.link, self.state.folder, task.get("check", self.check), task.get("env", {}), index)
        answer: dict[str, Any]
        try:
            with Limit(task.get("timeout")):
                outcome = _apply(task, node)
            answer = {"state": outcome.state, "msg": outcome.msg, "diff": outcome.diff, "result": outcome.result}
        except Failure as failure:
            answer = {"state": "failed", "msg": failure.msg, "diff": None, "result": failure.result}
        except OSError as error:
            answer = {"state": "failed", "msg": str(error), "diff": None, "result": {"errno": error.errno}}
        except Closed:
            raise
        except Exception as error:
            import traceback

            msg = f"a bug in the module {task['module']}: {type(error).__name__}: {error}"
            answer = {"state": "failed", "msg": msg, "diff": None, "result": {"traceback": traceback.format_exc()}}
        node.settle()
        answer["seconds"] = round(time.monotonic() - started, 4)
        return answer


class Limit:
    """Raises Failure in what runs inside when it takes longer than `seconds`; programs that it runs are ended."""

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds or 0

    def __enter__(self) -> None:
        if self.seconds:
            import signal

            signal.signal(signal.SIGALRM, self._alarm)
            signal.setitimer(signal.ITIMER_REAL, self.seconds)

    def __exit__(self, *_: object) -> None:
        if self.seconds:
            import signal

            signal.setitimer(signal.ITIMER_REAL, 0)

    def _alarm(self, *_: object) -> None:
        raise Failure(f"timed out after {self.seconds:g} s")


def _apply(task: dict[str, Any], node: LocalNode) -> Outcome:
    name = "sparkops.node.modules." + task["module"]
    __import__(name)
    module = sys.modules[name]
    kinds = task.get("kinds", {})
    values = {key: _value(kinds.get(key), value) for key, value in task["args"].items()}
    arguments: Arguments = module.Args(**values)
    outcome: Outcome = module.apply(arguments, node)
    return outcome


def _value(kind: str | None, value: Any) -> Any:
    """What a field's type makes of a value from the frame: paths are expanded here, for the user we run as."""
    if kind is None or value is None:
        return value
    if isinstance(value, list):
        return [_value(kind, item) for item in value]
    if kind == "path":
        return Path(os.path.expanduser(value))
    if kind == "source":
        from base64 import b64decode

        inline = None if value["inline"] is None else b64decode(value["inline"])
        tree = Tree(value["tree"]["folders"], value["tree"]["files"]) if "tree" in value else None
        return Source(value["name"], value["digest"], value["size"], inline, tree)
    if kind == "patch":
        return Patch(value["name"], value["file"], value["versions"], value["diff"])
    assert kind == "template", kind
    return Template(value)
