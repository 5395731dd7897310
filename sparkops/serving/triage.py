"""Names what is wrong with a served copy: evidence against the table of known failures. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from msgspec import Struct, structs

from sparkops.serving.evidence import Evidence
from sparkops.serving.failures import Failure, Failures, Severity
from sparkops.serving.rootcause import root_cause, without_ignored
from sparkops.serving.signs import READY, Sign, signs
from sparkops.serving.values import Known, values

# What an unknown failure gets: after the causes that are known, before what follows from them.
UNKNOWN = 840
# A failure of an earlier run ranks behind everything that is so now.
EARLIER = 1500
QUOTES = 3
# How long, in seconds, what ended the run before is told of a copy that serves again.
RECENT = 86400


class Finding(Struct, frozen=True):
    """One thing that is wrong. evidence: the lines that show it, as they were seen."""

    id: str
    title: str
    severity: Severity
    precedence: int
    cause: str
    evidence: list[str]
    cure: str
    consequence: bool = False


def triage(evidence: Evidence, failures: Failures) -> list[Finding]:
    """The findings, the most telling one first.

    A copy that serves is judged by its signs; what ended an earlier run of it is a warning. One that does not is judged
    by the log of its last run, or of the one before while that says nothing.
    """
    seen = signs(evidence)
    run, before = (clean(lines, evidence, failures) for lines in (evidence.journal.run, evidence.journal.before))
    if evidence.serving:
        found = matched(evidence, failures, [], seen)
        if evidence.uptime is not None and evidence.uptime < RECENT:
            found += past(logged(evidence, failures, before, seen), found)
    else:
        # A restart that has said nothing yet is judged by the run before it; a start by hand begins anew.
        fresh = evidence.running and not evidence.number("NRestarts")
        lines = run if fresh or telling(run, failures) else before
        found = matched(evidence, failures, lines, seen)
        if not explained(found) and ended(evidence):
            found += unknown(lines, evidence, failures, found)
    return sorted(found, key=lambda one: one.precedence)


def clean(lines: list[str], evidence: Evidence, failures: Failures) -> list[str]:
    """The lines without those that mean no harm, by the table, by the recipe, and by Python's own word."""
    benign = [re.compile(pattern) for pattern in failures.benign]
    pieces = [str(piece) for piece in evidence.expected.get("benign") or []]
    return [
        line
        for line in without_ignored(lines)
        if not any(pattern.search(line) for pattern in benign) and not any(piece in line for piece in pieces)
    ]


def matched(evidence: Evidence, failures: Failures, lines: list[str], seen: dict[str, Sign]) -> list[Finding]:
    """The rows that these lines, the kernel's log and the signs match."""
    found = []
    for row in applicable(failures, seen):
        severity = row.serving_severity if evidence.serving else row.severity
        quotes, known = look(row, lines, evidence.kernel or [], seen)
        if severity is not None and quotes is not None:
            asked = {name: value for sign in row.only_if for name, value in seen[sign].values.items()}
            found.append(finding(row, severity, quotes, values(evidence, {**asked, **known})))
    return found


def logged(evidence: Evidence, failures: Failures, lines: list[str], seen: dict[str, Sign]) -> list[Finding]:
    """The rows that these lines alone match."""
    found = []
    for row in applicable(failures, seen):
        line, groups = search(row.match.lines, lines)
        if line is not None:
            found.append(finding(row, row.severity, [line], values(evidence, groups)))
    return found


def applicable(failures: Failures, seen: dict[str, Sign]) -> list[Failure]:
    """The rows whose conditions the signs meet."""
    return [row for row in failures.failures if seen.keys() >= set(row.only_if) and not seen.keys() & set(row.unless)]


def look(
    row: Failure, lines: list[str], kernel: list[str], seen: dict[str, Sign]
) -> tuple[list[str] | None, dict[str, Any]]:
    """What shows that a row matches (None: nothing does), and the values that came with it."""
    quotes: list[str] = []
    known: dict[str, Any] = {}
    hit = False
    for patterns, where in ((row.match.lines, lines), (row.match.kernel, kernel)):
        line, groups = search(patterns, where)
        if line is not None:
            hit = True
            quotes.append(line)
            known = {**groups, **known}
    for name in row.match.signs:
        if name in seen:
            hit = True
            quotes += seen[name].quotes
            known = {**seen[name].values, **known}
    return (list(dict.fromkeys(quotes))[:QUOTES] if hit else None), known


def search(patterns: list[str], lines: list[str]) -> tuple[str | None, dict[str, Any]]:
    """The first line that the first pattern to be found is in, and the named groups."""
    for pattern in map(re.compile, patterns):
        for line in lines:
            if found := pattern.search(line):
                return line, {name: value for name, value in found.groupdict().items() if value is not None}
    return None, {}


def finding(row: Failure, severity: Severity, quotes: list[str], known: Known) -> Finding:
    """A row with its texts filled in."""
    cause, cure = (text.format_map(known) for text in (row.cause, row.cure))
    # What ranks as less than a failure stands behind the failures.
    precedence = row.precedence + (EARLIER if severity != row.severity else 0)
    return Finding(row.id, row.title, severity, precedence, cause, quotes, cure, row.consequence)


def past(earlier: Sequence[Finding], found: Sequence[Finding]) -> list[Finding]:
    """What ended the run before, as a warning on a copy that serves again."""
    first = min((one for one in earlier if one.severity == "failure"), key=lambda one: one.precedence, default=None)
    if first is None or first.id in {one.id for one in found}:
        return []
    cause = f"It serves again; its run before ended so. {first.cause}"
    return [structs.replace(first, severity="warning", precedence=first.precedence + EARLIER, cause=cause)]


def explained(found: Sequence[Finding]) -> bool:
    """Whether a finding tells why the copy does not serve."""
    return any(one.severity == "failure" and not one.consequence for one in found)


def telling(lines: list[str], failures: Failures) -> bool:
    """Whether a run's lines say how it went: it got ready, or there is an error."""
    patterns = [re.compile(pattern) for row in failures.failures for pattern in row.match.lines]
    if any(READY in line or any(pattern.search(line) for pattern in patterns) for line in lines):
        return True
    return root_cause(lines, failures) is not None


def ended(evidence: Evidence) -> bool:
    """Whether a run has ended by itself."""
    waits = evidence.properties.get("SubState") == "auto-restart"
    return waits or evidence.number("NRestarts") > 0 or evidence.properties.get("ActiveState") == "failed"


def unknown(lines: list[str], evidence: Evidence, failures: Failures, found: Sequence[Finding]) -> list[Finding]:
    """The finding for a failure that the table does not know: the first real error line."""
    error = root_cause(lines, failures)
    if error is not None:
        cause = f"The engine ended with: {error.said}"
        quotes = [error.line]
    elif any(one.severity == "failure" for one in found):
        return []
    else:
        status = evidence.properties.get("ExecMainStatus", "?")
        result = evidence.properties.get("Result", "unknown")
        cause = f"The unit ended with status {status} (result {result}), and no error is on record."
        quotes = lines[-QUOTES:]
    cure = "It is not in sparkops' table of failures. Read the log around that line: sparkops logs NODE --lines 200."
    return [Finding("unknown", "An error that is not known", "failure", UNKNOWN, cause, quotes, cure)]
