"""The product's vision-tower patch, made out for the stand-in's own qwen3_5.py."""

from __future__ import annotations

import difflib
import hashlib
import re

NAME = "qwen3_5-language-only-guard"
FILE = "vllm/model_executor/models/qwen3_5.py"
# Where a model builds its vision tower: the `with` line and the one line under it.
TOWER = re.compile(r"^( +)(with self\._mark_tower_model\(.*\):\n) +(self\.visual = .*\n)", re.MULTILINE)
GUARDED = (
    r"\1if multimodal_config.language_model_only:\n"
    r"\1    self.visual = None\n"
    r"\1else:\n"
    r"\1    \2"
    r"\1        \3"
)
CONTEXT_LINES = 1


def guarded(source: str) -> str:
    """`source` with the tower left out, in both classes, when only the language model is wanted."""
    return TOWER.sub(GUARDED, source)


def patch(source: str, versions: tuple[str, ...]) -> dict[str, object]:
    """The document of patches/NAME.yml for a file that is `source` in each of the engine's `versions`."""
    after = guarded(source)
    before_lines, after_lines = source.splitlines(keepends=True), after.splitlines(keepends=True)
    diff = difflib.unified_diff(before_lines, after_lines, f"a/{FILE}", f"b/{FILE}", n=CONTEXT_LINES)
    hashes = {"before": sha256(source), "after": sha256(after)}
    return {
        "name": NAME,
        "description": "Do not build the vision tower when --language-model-only is set (the lab's stand-in engine).",
        "license": "Apache-2.0",
        "file": FILE,
        "versions": [{"engine": f"vllm {version}", **hashes} for version in versions],
        "diff": "".join(diff),
    }


def sha256(text: str) -> str:
    """Hex digest of the text as it lies on disk."""
    return hashlib.sha256(text.encode()).hexdigest()
