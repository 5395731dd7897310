"""Which names a template mentions: what a run must know before it can render it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import jinja2
from jinja2 import meta, nodes

from sparkops.playbook.blame import blame
from sparkops.playbook.environment import Environment

if TYPE_CHECKING:
    from sparkops.playbook.jinja import Engine

LOOKUP_CALLS = ("lookup", "query", "q")


def mentioned(engine: Engine, tree: nodes.Template) -> set[str]:
    """Names that a template uses and does not set.

    lookup('vars', 'a') mentions `a`; with a name that is computed it mentions `vars`, as `vars[...]` does.
    lookup('template', 'a.j2') mentions what that file does.
    """
    found = meta.find_undeclared_variables(tree) - engine.bare.globals.keys()
    for name, terms in _lookups(tree):
        constants = [str(term.value) for term in terms if isinstance(term, nodes.Const)]
        if name == "vars":
            found |= set(constants) if len(constants) == len(terms) else {"vars"}
        elif name == "template":
            for path in _files(engine, constants):
                found |= engine.file_names(path)
    return found


def _lookups(tree: nodes.Template) -> Iterator[tuple[str, list[nodes.Expr]]]:
    """The lookups whose kind is a constant, with their terms."""
    for call in tree.find_all(nodes.Call):
        if isinstance(call.node, nodes.Name) and call.node.name in LOOKUP_CALLS and call.args:
            kind = call.args[0]
            if isinstance(kind, nodes.Const):
                yield str(kind.value).removeprefix("ansible.builtin."), call.args[1:]


def _files(engine: Engine, names: list[str]) -> Iterator[Path]:
    """The files of those names; one that is nowhere is left out, for whoever renders it to complain."""
    for name in names:
        found = next((place / name for place in engine.search if (place / name).is_file()), None)
        if found:
            yield found


class FileNames:
    """What a template file mentions, as long as no file that was read for it has changed."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.unchanged: list[Callable[[], bool]] = []

    def holds(self) -> bool:
        """Whether it is so still."""
        return all(same() for same in self.unchanged)


def mentioned_in_file(engine: Engine, path: Path, environment: Environment) -> FileNames:
    """Names that a file, and all that it includes, imports or extends by a constant name, uses and does not set.

    Raises InputError.
    """
    assert environment.loader is not None
    found = FileNames()
    waiting, seen = [path.name], set()
    while waiting:
        name = waiting.pop()
        seen.add(name)
        try:
            source, _, unchanged = environment.loader.get_source(environment, name)
            tree = environment.parse(source, name, str(path.parent / name))
        except (jinja2.TemplateError, UnicodeDecodeError, RecursionError) as error:
            raise blame(error, path) from None
        found.names |= mentioned(engine, tree)
        # What a lookup reads is another file's matter: with one, nothing is kept.
        reads = any(name == "template" for name, _ in _lookups(tree))
        found.unchanged.append(_never if reads or unchanged is None else unchanged)
        waiting += [other for other in meta.find_referenced_templates(tree) if other and other not in seen]
    return found


def _never() -> bool:
    return False
