"""Lines that a task hands on while it goes on."""

from __future__ import annotations

from pathlib import Path

from sparkops.events import Output
from tests.runner.conftest import Play


def test_lines_that_a_task_tells_are_events_while_it_goes_on(play: Play, tmp_path: Path) -> None:
    program = tmp_path / "journalctl"
    program.write_text("#!/bin/sh\necho one\nsleep 0.3\necho two\n")
    program.chmod(0o755)
    ran = play(
        f"""
        - hosts: all
          gather_facts: false
          environment: {{PATH: "{tmp_path}:/usr/bin:/bin"}}
          tasks:
            - name: Follow
              journal: {{unit: vllm, follow: true}}
              ignore_errors: true
            - name: Follow in silence
              journal: {{unit: vllm, follow: true}}
              no_log: true
        """
    )
    told = [event for event in ran.events if isinstance(event, Output)]
    assert [(event.host, event.task, event.lines) for event in told] == [
        ("one", "Follow", ["one"]),
        ("one", "Follow", ["two"]),
    ]
    assert ran.states() == {"Follow": "ignored", "Follow in silence": "failed"}
