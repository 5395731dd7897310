from __future__ import annotations

import difflib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkops.node import patching
from sparkops.node.patching import BadDiff

TWICE = "a\nblock\nx\nb\nblock\ny\n"


def made(old: str, new: str, context: int = 3) -> str:
    lines = difflib.unified_diff(patching.split(old), patching.split(new), "a", "b", n=context)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


@pytest.mark.parametrize(
    ("text", "diff", "expected"),
    [
        ("a\nb\nc\n", "@@ -2 +2 @@\n-b\n+B\n", "a\nB\nc\n"),
        # Found by content, wherever the diff says.
        ("0\n0\n0\na\nb\nc\n", "@@ -2 +2 @@\n-b\n+B\n", "0\n0\n0\na\nB\nc\n"),
        ("a\nb\nc\n", "--- a/f\n+++ b/f\n@@ -90,2 +90 @@ def f():\n a\n-b\n", "a\nc\n"),
        # Two places: the context tells them apart, also when the line numbers are the other's.
        (TWICE, "@@ -2,2 +2,2 @@\n-block\n+BLOCK\n y\n", "a\nblock\nx\nb\nBLOCK\ny\n"),
        # ... and without context, the line number does.
        (TWICE, "@@ -5 +5 @@\n-block\n+BLOCK\n", "a\nblock\nx\nb\nBLOCK\ny\n"),
        # In order: the second hunk's place is after the first's.
        (TWICE, "@@ -1,2 +1,2 @@\n a\n-block\n+one\n@@ -9 +9 @@\n-block\n+two\n", "a\none\nx\nb\ntwo\ny\n"),
        # An empty context line whose space an editor stripped.
        ("a\n\nb\n", "@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n", "a\n\nc\n"),
        ("a", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n", "a\n"),
        ("a\n", "@@ -1 +1 @@\n-a\n+a\n\\ No newline at end of file\n", "a"),
        ("", "@@ -0,0 +1 @@\n+a\n", "a\n"),
        ("a\nb\n", "@@ -1,0 +2 @@\n+x\n", "a\nx\nb\n"),
    ],
)
def test_applies(text: str, diff: str, expected: str) -> None:
    assert patching.apply(text, patching.parse(diff)) == (expected, [])


@pytest.mark.parametrize(
    ("text", "diff"),
    [
        ("a\nb\n", "@@ -1 +1 @@\n-c\n+d\n"),
        # Two places and no way to tell.
        (TWICE, "@@ -3 +3 @@\n-block\n+BLOCK\n"),
        # Before the hunk that came first.
        ("a\nb\n", "@@ -2 +2 @@\n-b\n+B\n@@ -1 +1 @@\n-a\n+A\n"),
        # A last line with a newline is not one without.
        ("a", "@@ -1 +1 @@\n-a\n+b\n"),
        ("a\r\n", "@@ -1 +1 @@\n-a\n+b\n"),
        ("a\x0cb\n", "@@ -1 +1 @@\n-b\n+c\n"),
        ("", "@@ -1 +1 @@\n-a\n+b\n"),
    ],
)
def test_rejects(text: str, diff: str) -> None:
    hunks = patching.parse(diff)
    assert patching.apply(text, hunks)[1] == hunks[-1:]


@pytest.mark.parametrize(
    ("diff", "message"),
    [
        ("", "no hunk"),
        ("just words\n", "no hunk"),
        ("@@ -1 +1 @@\n-a\n", "ends inside a hunk"),
        ("@@ -1,2 +1,2 @@\n-a\n+b\n", "ends inside a hunk"),
        ("@@ nonsense @@\n-a\n+b\n", "not a hunk's header"),
        ("@@ -1 +1 @@\n-a\n+b\n+c\n", "line 4"),
        ("@@ -1 +1 @@\n-a\n*b\n", "line 3"),
        ("@@ -1 +1 @@\n a\n", "changes nothing"),
        ("--- a\n+++ b\n@@ -1 +1 @@\n-a\n+b\n--- c\n+++ d\n@@ -1 +1 @@\n-a\n+b\n", "second file"),
    ],
)
def test_what_is_no_diff_is_refused(diff: str, message: str) -> None:
    with pytest.raises(BadDiff, match=message):
        patching.parse(diff)


def test_explains_hunk_by_hunk() -> None:
    hunks = patching.parse("@@ -1 +1 @@\n-a\n+A\n@@ -2 +2 @@\n-b\n+B\n@@ -3,3 +3,3 @@\n c\n-d\n+D\n e\n")
    told = patching.explain("a\nB\nc\nd!\ne\n", hunks, "f.py")
    assert "hunk 1 of 3 (line 1) applies\n" in told
    assert "hunk 2 of 3 (line 2) is already in the file\n" in told
    assert "hunk 3 of 3 (line 3) does not apply" in told
    assert "--- expected: f.py\n+++ found: f.py, line 3\n" in told
    assert "-d\n+d!\n" in told


TEXTS = st.lists(st.sampled_from(["a\n", "b\n", "\n", "  c\n", "d\x0c\n"]), max_size=12).map("".join)


@given(TEXTS, TEXTS, st.integers(0, 3), st.booleans())
def test_any_change_applies_and_reverses(old: str, new: str, context: int, cut: bool) -> None:
    old = old.rstrip("\n") if cut else old
    if old == new:
        return
    hunks = patching.parse(made(old, new, context))
    assert patching.apply(old, hunks) == (new, [])
    assert patching.apply(new, patching.reverse(hunks)) == (old, [])


def test_agrees_with_a_real_diff_file(tmp_path: Path) -> None:
    old = "".join(f"line {number}\n" for number in range(40))
    new = old.replace("line 3\n", "three\n").replace("line 30\n", "").replace("line 39\n", "line 39")
    diff = made(old, new)
    assert len(patching.parse(diff)) == 3
    assert patching.apply("more\n" * 9 + old, patching.parse(diff)) == ("more\n" * 9 + new, [])
