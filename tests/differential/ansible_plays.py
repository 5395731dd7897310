"""The worker: ansible-core's PlaybookExecutor over the cases that come as JSON on stdin. A script, never imported.

stdin:  [{"folder", "argv": the arguments of ansible-playbook, "out": a file}], each case with a folder of its own.
Each case runs in a fork, two at a time, and leaves in its file
{"events": [[host, kind, task, state, module, result]], "recap": {host: counts}, "code": int, "said": its output's end}.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from ansible.cli import playbook as command_line
from ansible.executor.playbook_executor import PlaybookExecutor
from ansible.playbook.handler import Handler
from ansible.plugins.callback import CallbackBase
from ansible.plugins.loader import init_plugin_loader

AT_ONCE = 2


class Recorder(CallbackBase):  # type: ignore[misc]
    """Keeps what happens, in order."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "recorder"

    def __init__(self) -> None:
        super().__init__()
        self.events: list[Any] = []
        self.recap: dict[str, Any] = {}

    def _keep(self, result: Any, state: str) -> None:
        kind = "handler" if isinstance(result.task, Handler) else "task"
        self.events.append(
            [result.host.get_name(), kind, result.task.get_name(), state, result.task.action, result.result]
        )

    def v2_runner_on_ok(self, result: Any) -> None:
        """It has ended well."""
        self._keep(result, "changed" if result.result.get("changed") else "ok")

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        """It has failed."""
        self._keep(result, "ignored" if ignore_errors else "failed")

    def v2_runner_on_skipped(self, result: Any) -> None:
        """It was left out."""
        self._keep(result, "skipped")

    def v2_runner_on_unreachable(self, result: Any) -> None:
        """The host was not there."""
        self._keep(result, "unreachable")

    def v2_playbook_on_stats(self, stats: Any) -> None:
        """The end."""
        self.recap = {host: stats.summarize(host) for host in stats.processed}


class Recorded(PlaybookExecutor):  # type: ignore[misc]
    """A PlaybookExecutor whose events the recorder sees."""

    recorder: Recorder

    def run(self) -> Any:
        """Run, with the recorder in the place of the screen."""
        self.recorder._init_callback_methods()
        self._tqm._callback_plugins.append(self.recorder)
        return super().run()


def play(case: dict[str, Any], recorder: Recorder) -> int:
    """Run one case in this process. Gives ansible-playbook's exit code."""
    os.chdir(case["folder"])
    Recorded.recorder = recorder
    command_line.PlaybookExecutor = Recorded
    command = command_line.PlaybookCLI(["ansible-playbook", *case["argv"]])
    command.parse()
    return int(command.run() or 0)


def child(case: dict[str, Any]) -> None:
    """Run one case and end; its answer is in the case's file."""
    log = Path(f"{case['out']}.log")
    with log.open("w", encoding="utf-8") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    recorder, code, error = Recorder(), 1, ""
    try:
        code = play(case, recorder)
    except Exception as caught:  # whatever Ansible raises, it refused
        error = f"{type(caught).__name__}: {caught}"
    sys.stdout.flush()
    answer = {
        "folder": case["folder"],
        "events": recorder.events,
        "recap": recorder.recap,
        "code": code,
        "error": error,
        "said": log.read_text(encoding="utf-8")[-2000:],
    }
    Path(case["out"]).write_text(json.dumps(answer, default=str), encoding="utf-8")
    os._exit(0)


def main() -> None:
    """Run all cases, each in a fork of this process, which has loaded Ansible already."""
    cases = json.load(sys.stdin)
    init_plugin_loader()
    running = 0
    for case in cases:
        if running == AT_ONCE:
            os.wait()
            running -= 1
        if not os.fork():
            child(case)
        running += 1
    while running:
        os.wait()
        running -= 1


if __name__ == "__main__":
    main()
