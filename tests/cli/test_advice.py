"""What an error tells people to type exists."""

from __future__ import annotations

import re

from sparkops.cli.main import VERBS
from sparkops.serving.failures import SHIPPED

# Where a cure speaks of sparkops, not of a command.
PROSE = {"ends", "never"}


def test_cures_name_verbs_that_there_are() -> None:
    named = set(re.findall(r"sparkops ([a-z][a-z-]+)\b", "\n".join(_cures(SHIPPED.read_text(encoding="utf-8")))))
    assert named
    assert named - PROSE <= VERBS.keys()


def _cures(text: str) -> list[str]:
    return re.findall(r"^ +cure: (.*)$", text, re.MULTILINE)
