"""The table of known failures: the schema of failures.yml, and reading it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct

from sparkops.errors import InputError
from sparkops.project import yaml
from sparkops.recipes.convert import convert

SHIPPED = Path(__file__).with_name("failures.yml")

Severity = Literal["failure", "warning", "hint"]
Id = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9-]*$")]


class Match(Struct, frozen=True, forbid_unknown_fields=True):
    """Any of these: regexes on a line of the unit's log or of the kernel's, names of signs."""

    lines: list[str] = []
    kernel: list[str] = []
    signs: list[str] = []


class Failure(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One known failure; the head of failures.yml says what its fields mean."""

    id: Id
    title: str
    precedence: int
    severity: Severity = "failure"
    while_serving: Literal["failure", "warning", "hint", "ignore"] | None = None
    match: Match
    only_if: list[str] = []
    unless: list[str] = []
    consequence: bool = False
    cause: str
    cure: str

    @property
    def serving_severity(self) -> Severity | None:
        """What it is on a copy that serves all the same; None: nothing."""
        if self.while_serving:
            return None if self.while_serving == "ignore" else self.while_serving
        return "warning" if self.severity == "failure" else self.severity


class Failures(Struct, frozen=True, forbid_unknown_fields=True):
    """The table. benign, never_the_cause, account_begins: regexes on lines."""

    failures: list[Failure]
    benign: list[str] = []
    never_the_cause: list[str] = []
    account_begins: list[str] = []


def load(path: Path = SHIPPED) -> Failures:
    """The table in a file. Raises InputError for one that is none: unknown fields, a bad regex, an id used twice."""
    table = convert(yaml.load(path), Failures, path)
    ids = [row.id for row in table.failures]
    if len(set(ids)) < len(ids):
        raise InputError(f"{next(one for one in ids if ids.count(one) > 1)} is there twice", where=str(path))
    rows = [pattern for row in table.failures for pattern in (*row.match.lines, *row.match.kernel)]
    for pattern in (*rows, *table.benign, *table.never_the_cause, *table.account_begins):
        try:
            re.compile(pattern)
        except re.error as error:
            raise InputError(f"{pattern!r} is no regular expression: {error}", where=str(path)) from None
    return table
