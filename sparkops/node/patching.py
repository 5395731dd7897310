"""Unified diffs of one file, applied by content: a hunk goes where its old lines stand, line numbers only hint.

Pure: text in, text out. Lines keep their "\\n"; a last line without one is told apart from one with.
"""

from __future__ import annotations

MARK = "\\ No newline"


class BadDiff(ValueError):
    """The text is not a unified diff of one file; the message names the line of it."""


class Hunk:
    """One change: the lines `old` become `new`; the starts are the diff's line numbers for them, from 1."""

    def __init__(self, start: int, new_start: int, old: list[str], new: list[str]) -> None:
        self.start = start
        self.new_start = new_start
        self.old = old
        self.new = new

    def index(self) -> int:
        """Where the diff saw the old lines, from 0; a hunk without any names the line before it."""
        return self.start - 1 if self.old else self.start


def split(text: str) -> list[str]:
    """Lines that end at "\\n" only: splitlines would also cut at form feeds and lone carriage returns."""
    lines = text.split("\n")
    return [line + "\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def parse(diff: str) -> list[Hunk]:
    """The hunks of a unified diff of one file. Raises BadDiff."""
    lines = split(diff)
    hunks: list[Hunk] = []
    at = headers = 0
    while at < len(lines):
        line = lines[at]
        headers += line.startswith("--- ")
        if headers > 1:
            raise BadDiff(f"line {at + 1}: a second file starts here; a patch changes one file")
        if line.startswith("@@"):
            hunk, at = _hunk(lines, at)
            hunks.append(hunk)
        elif hunks and line.strip() and not line.startswith(("--- ", "+++ ")):
            raise BadDiff(f"line {at + 1}: another hunk was expected, not {line.strip()!r}")
        else:
            at += 1
    if not hunks:
        raise BadDiff("no hunk (a line that begins with @@) in it")
    return hunks


def _hunk(lines: list[str], at: int) -> tuple[Hunk, int]:
    """The hunk whose header is `lines[at]`, and the index of the line after it."""
    header = lines[at].strip()
    start, old_count, new_start, new_count = _ranges(header, at + 1)
    old: list[str] = []
    new: list[str] = []
    sides: list[list[str]] = []
    at += 1
    while len(old) < old_count or len(new) < new_count or (at < len(lines) and lines[at].startswith(MARK)):
        if at == len(lines):
            raise BadDiff(f"line {at}: the diff ends inside a hunk ({header})")
        line = lines[at].rstrip("\n")
        at += 1
        if line.startswith(MARK):
            for side in sides:
                side[-1] = side[-1].rstrip("\n")
            continue
        # Editors strip a blank context line's only space.
        kind = line[:1] or " "
        if kind not in " +-":
            raise BadDiff(f"line {at}: {line!r} begins with none of ' ', '+', '-' ({header})")
        sides = [side for side, kinds in ((old, " -"), (new, " +")) if kind in kinds]
        for side in sides:
            side.append(line[1:] + "\n")
    if len(old) > old_count or len(new) > new_count:
        raise BadDiff(f"line {at}: the hunk has other line counts than its header says ({header})")
    if old == new:
        raise BadDiff(f"line {at}: the hunk changes nothing ({header})")
    return Hunk(start, new_start, old, new), at


def _ranges(header: str, number: int) -> tuple[int, int, int, int]:
    """`@@ -587,7 +588,10 @@` -> (587, 7, 588, 10)."""
    try:
        old, new = header.split("@@")[1].split()
        if (old[0], new[0]) != ("-", "+"):
            raise ValueError
        start, _, count = old[1:].partition(",")
        new_start, _, new_count = new[1:].partition(",")
        return int(start), int(count or 1), int(new_start), int(new_count or 1)
    except (ValueError, IndexError):
        raise BadDiff(f"line {number}: not a hunk's header: {header}") from None


def reverse(hunks: list[Hunk]) -> list[Hunk]:
    """The hunks that undo these."""
    return [Hunk(hunk.new_start, hunk.start, hunk.new, hunk.old) for hunk in hunks]


def apply(text: str, hunks: list[Hunk]) -> tuple[str, list[Hunk]]:
    """The text with the hunks in it, in order, and those that found no place of their own (left out)."""
    lines = split(text)
    rejected: list[Hunk] = []
    begin = shift = 0
    for hunk in hunks:
        at = place(lines, hunk, begin, hunk.index() + shift)
        if at is None:
            rejected.append(hunk)
            continue
        lines[at : at + len(hunk.old)] = hunk.new
        begin = at + len(hunk.new)
        shift += len(hunk.new) - len(hunk.old)
    return "".join(lines), rejected


def place(lines: list[str], hunk: Hunk, begin: int, hint: int) -> int | None:
    """The index in `lines`, from `begin` on, where the hunk's old lines stand; of several the one at `hint`."""
    if not hunk.old:
        # An insertion without context has nothing but its line number.
        return hint if begin <= hint <= len(lines) else None
    size = len(hunk.old)
    found = [at for at in range(begin, len(lines) - size + 1) if lines[at : at + size] == hunk.old]
    if len(found) == 1:
        return found[0]
    return hint if hint in found else None


def nearest(lines: list[str], hunk: Hunk) -> int:
    """Where in `lines` most of the hunk's old lines stand at their places; ties go to the hinted line."""
    hint = hunk.index()

    def likeness(at: int) -> tuple[int, int]:
        same = sum(one == other for one, other in zip(hunk.old, lines[at:]))
        return same, -abs(at - hint)

    return max(range(max(1, len(lines))), key=likeness)


def explain(text: str, hunks: list[Hunk], name: str) -> str:
    """Why hunks do not fit a text: a line a hunk, and for each that does not, how the text differs there."""
    from difflib import unified_diff

    rejected = apply(text, hunks)[1]
    undoable = reverse(hunks)
    lines = split(text)
    said = []
    for number, (hunk, undo) in enumerate(zip(hunks, undoable), 1):
        title = f"hunk {number} of {len(hunks)} (line {hunk.start})"
        if hunk not in rejected:
            said.append(f"{title} applies\n")
        elif place(lines, undo, 0, undo.index()) is not None:
            said.append(f"{title} is already in the file\n")
        else:
            at = nearest(lines, hunk)
            said.append(f"{title} does not apply; the file differs from what it expects:\n")
            found = lines[at : at + len(hunk.old)]
            told = unified_diff(hunk.old, found, f"expected: {name}", f"found: {name}, line {at + 1}", n=1)
            said.extend(line if line.endswith("\n") else line + "\n" for line in told)
    return "".join(said)
