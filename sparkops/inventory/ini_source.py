"""An INI inventory: hosts below `[group]`, groups below `[group:children]`, variables below `[group:vars]`."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from typing import NoReturn

from sparkops.errors import InputError, Position
from sparkops.inventory.groups import Sources
from sparkops.inventory.literal import literal
from sparkops.inventory.names import hosts_of
from sparkops.project.near import did_you_mean

KINDS = ("hosts", "children", "vars")

SECTION = re.compile(r"\[(?P<group>[^:\]\s]+)(?::(?P<kind>\w+))?\]\s*(?:#.*)?")
_CHILD = re.compile(r"(?P<group>[^:\]\s]+)\s*(?:#.*)?")
# What shlex must look at; other lines are words between blanks.
_SHELL = re.compile(r"""["'\\#]""")


@dataclass
class _Pending:
    """A group that is used before the section that declares it; at the end that is an error at `where`."""

    use: str
    where: Position
    parents: list[tuple[str, Position]] = field(default_factory=list)


def read_ini(text: str, name: str, file: str, sources: Sources) -> None:
    """Adds what an INI text defines to `sources`; `name` is what positions say, `file` the absolute path.

    Raises InputError.
    """
    reader = _Reader(name, file, sources)
    for number, line in enumerate(text.splitlines(), start=1):
        reader.read(number, line)
    reader.end()


class _Reader:
    """Reads line by line. The text begins as if below `[ungrouped]`."""

    def __init__(self, name: str, file: str, sources: Sources) -> None:
        self.name = name
        self.file = file
        self.sources = sources
        self.group = "ungrouped"
        self.kind = "hosts"
        self.pending: dict[str, _Pending] = {}
        self.line = ""
        self.number = 0

    def at(self, part: str = "", start: int = 0) -> Position:
        """Where `part` stands in the line, from `start` on; the line's first character when it is not found."""
        column = self.line.find(part, start) if part else -1
        return Position(self.name, self.number, (column if column >= 0 else self.indent) + 1)

    @property
    def indent(self) -> int:
        return len(self.line) - len(self.line.lstrip())

    def fail(self, message: str, part: str = "", hint: str | None = None) -> NoReturn:
        raise InputError(message, where=self.at(part), hint=hint)

    def read(self, number: int, line: str) -> None:
        self.number, self.line, text = number, line, line.strip()
        if not text or text[0] in ";#":
            return
        section = SECTION.fullmatch(text)
        if section:
            self.begin(section["group"], section["kind"] or "hosts")
        elif text.startswith("[") and text.endswith("]"):
            self.fail(f"{text!r} is no section", hint="a section is [GROUP], [GROUP:children] or [GROUP:vars]")
        elif self.kind == "hosts":
            self.hosts(text)
        elif self.kind == "vars":
            self.variable(text)
        else:
            self.child(text)

    def begin(self, group: str, kind: str) -> None:
        if kind not in KINDS:
            self.fail(f"a section is of the kind children or vars, not {kind!r}", kind, did_you_mean(kind, KINDS[1:]))
        self.group, self.kind = group, kind
        if kind == "vars":
            if group not in self.sources.groups and group not in self.pending:
                self.pending[group] = _Pending("has variables", self.at(group))
            self.sources.group(group)
            return
        self.sources.group(group)
        declared = self.pending.pop(group, None)
        for parent, at in declared.parents if declared else ():
            self.sources.add_child(parent, group, at)

    def hosts(self, text: str) -> None:
        words = self.words(text)
        if words[0] in ("---", "-") or words[0].endswith(":"):
            self.fail(f"{words[0]!r} is not a host name", hint="it looks like YAML: is it valid, in a .yml file?")
        try:
            names, port = hosts_of(words[0])
        except ValueError as error:
            self.fail(f"{words[0]!r}: {error}")
        found = []
        start = self.indent + 1
        for word in words[1:]:
            variable, equals, value = word.partition("=")
            if not equals or not variable:
                self.fail(
                    f"after a host's name comes NAME=VALUE, not {word!r}", word, "quote a value with blanks: name='a b'"
                )
            at = self.at(f"{variable}=", start)
            start = at.column
            found.append((variable, literal(value, at), at))
        for name in names:
            self.sources.host(name, self.file, port, self.at())
            self.sources.add_host(self.group, name)
            for variable, value, at in found:
                self.sources.set(name, variable, value, at)

    def words(self, text: str) -> list[str]:
        if not _SHELL.search(text):
            return re.split(r"[ \t]+", text)
        try:
            return shlex.split(text, comments=True)
        except ValueError as error:
            self.fail(f"the line cannot be split into words: {error}", hint="close the quote, or quote the quote")

    def variable(self, text: str) -> None:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not name:
            self.fail(f"below [{self.group}:vars] each line is NAME=VALUE, not {text!r}")
        at = self.at(name)
        self.sources.set(self.group, name, literal(value, at), at)

    def child(self, text: str) -> None:
        found = _CHILD.fullmatch(text)
        if not found:
            self.fail(f"below [{self.group}:children] each line is the name of a group, not {text!r}")
        group = found["group"]
        if group in self.sources.groups:
            self.sources.add_child(self.group, group, self.at(group))
        else:
            at = self.at(group)
            self.pending.setdefault(group, _Pending("is a child", at)).parents.append((self.group, at))

    def end(self) -> None:
        """Raises InputError for a group that no section declared."""
        for group, pending in self.pending.items():
            known = [name for name in self.sources.groups if name != group]
            raise InputError(
                f"the group {group!r} {pending.use}, but no section declares it",
                where=pending.where,
                hint=did_you_mean(group, known, f"add a section [{group}]"),
            )
