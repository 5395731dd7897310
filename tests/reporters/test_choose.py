from __future__ import annotations

import io
import subprocess
import sys

import pytest

from sparkops.reporters import choose
from sparkops.reporters.json import JsonReporter
from sparkops.reporters.live import LiveReporter
from sparkops.reporters.plain import PlainReporter
from tests.reporters.samples import Terminal


@pytest.mark.parametrize(
    ("json", "stream", "term", "kind"),
    [
        (True, Terminal(), "xterm", JsonReporter),
        (False, Terminal(), "xterm-256color", LiveReporter),
        (False, Terminal(), "dumb", PlainReporter),
        (False, io.StringIO(), "xterm", PlainReporter),
    ],
)
def test_choose(monkeypatch: pytest.MonkeyPatch, json: bool, stream: io.StringIO, term: str, kind: type) -> None:
    monkeypatch.setenv("TERM", term)
    assert type(choose(json=json, stream=stream)) is kind


def test_a_terminal_that_has_no_unicode_gets_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    terminal.encoding = "ascii"
    assert type(choose(json=False, stream=terminal)) is PlainReporter


def test_rich_is_imported_only_to_draw() -> None:
    code = (
        "import sys, io; from sparkops.reporters import choose; choose(json=True, stream=io.StringIO());"
        "choose(json=False, stream=io.StringIO()); sys.exit('rich' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=30).returncode == 0
