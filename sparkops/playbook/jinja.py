"""Runs templates: `Engine` compiles them, `Scope` resolves the variables of one render as they are asked for."""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
from jinja2.utils import missing

from sparkops.errors import InputError, Position, SparkopsError, UndefinedName
from sparkops.playbook import overrides
from sparkops.playbook.blame import blame, place_of
from sparkops.playbook.environment import SCOPE, Environment, concat
from sparkops.playbook.lazy import LazyDict, LazyList, View, finalize
from sparkops.playbook.mentions import FileNames, mentioned, mentioned_in_file
from sparkops.playbook.template import is_template
from sparkops.playbook.undefined import Broken, Missing
from sparkops.project.values import Text, position
from sparkops.project.yaml import read

# What an expression that a user wrote can raise through filters, methods and operators.
EXPRESSION_ERRORS = (
    jinja2.TemplateError, ArithmeticError, AttributeError, LookupError, OSError, RuntimeError, TypeError, ValueError,
    re.error, AssertionError,
)  # fmt: skip


class Scope:
    """The variables of one render, rendered as they are asked for."""

    def __init__(self, engine: Engine, names: Mapping[str, Any]) -> None:
        self.engine = engine
        self.names = names
        self.done: dict[str, Any] = {}
        self.open: list[str] = []

    def resolve(self, name: str) -> Any:
        """The variable's value, `missing` when there is none, or an undefined value that says why it has none."""
        if name in self.done:
            return self.done[name]
        if name not in self.names:
            return View(self.names, self._named) if name == "vars" else missing
        given = self.names[name]
        is_hosts = name == "hostvars" and isinstance(given, Mapping)
        value = View(given, lambda host: self._host(given[host])) if is_hosts else self.view(given, name)
        if not isinstance(value, Missing):
            self.done[name] = value
        return value

    def view(self, value: Any, label: str) -> Any:
        if isinstance(value, Text) and is_template(value):
            return self._variable(value, label)
        if isinstance(value, dict) and not isinstance(value, LazyDict):
            return LazyDict(value, self, label)
        if isinstance(value, list) and not isinstance(value, LazyList):
            return LazyList(value, self, label)
        if isinstance(value, Mapping) and not isinstance(value, (dict, View)):
            return View(value, lambda key: self.view(value[key], f"{label}.{key}"))
        return value

    def _named(self, name: Any) -> Any:
        """An item of `vars`."""
        value = self.resolve(name)
        if value is missing:
            raise KeyError(name)
        return value

    def _host(self, variables: Any) -> Any:
        """An item of `hostvars`: that host's variables, whose templates see that host's names."""
        if not isinstance(variables, Mapping):
            return variables
        scope = Scope(self.engine, variables)
        return View(variables, scope._named)

    def _variable(self, text: Text, label: str) -> Any:
        """Errors are kept in the result: they count only if the value is used (`x is defined and x.y`)."""
        error: SparkopsError
        if label in self.open:
            chain = " -> ".join([*self.open[self.open.index(label) :], label])
            error = InputError(f"the variables go in a circle: {chain}", where=text.position)
            return Broken(name=label, exc=lambda _: error)
        self.open.append(label)
        try:
            return self.engine.run(self.engine.template(text), self, text, text)
        except UndefinedName as undefined:
            error = undefined
            return Missing(name=label, exc=lambda _: error)
        except InputError as wrong:
            error = wrong
            return Broken(name=label, exc=lambda _: error)
        finally:
            self.open.pop()


class Engine:
    """Compiles and runs templates; what is compiled is kept."""

    def __init__(self, search: Sequence[Path]) -> None:
        self.bases = list(search)
        self.search = [place for folder in search for place in (folder / "templates", folder)]
        self.inline = self._environment(self.bases, literal=True)
        self.bare = self._environment([], literal=False)
        self.templates: dict[tuple[str, bool], jinja2.Template] = {}
        self.mentioned: dict[tuple[str, bool], frozenset[str]] = {}
        self.others: dict[tuple[Any, ...], Environment] = {}
        self.files: dict[Path, tuple[jinja2.Template, str]] = {}
        self.file_mentions: dict[Path, FileNames] = {}

    @staticmethod
    def _environment(folders: list[Path], literal: bool, options: dict[str, Any] | None = None) -> Environment:
        return Environment(jinja2.FileSystemLoader(folders), literal, options)

    def template(self, text: str, bare: bool = False) -> jinja2.Template:
        """Compiles a template, or with `bare` an expression. Raises InputError."""
        key = str(text), bare
        if key not in self.templates:
            environment = self.bare if bare else self._for(text)
            try:
                tree = environment.parse_expression(text.strip()) if bare else environment.parse(text)
                code = environment.compile(tree, filename="<template>")
            except (jinja2.TemplateError, RecursionError) as error:
                raise blame(error, text) from None
            self.templates[key] = jinja2.Template.from_code(environment, code, environment.globals)
        return self.templates[key]

    def run(self, template: jinja2.Template, scope: Scope, text: str, source: str = "") -> Any:
        """The native result; lazy containers and undefined values stay what they are. Raises InputError.

        `text` is what errors are about; `source` is what was compiled, when its last newlines count.
        """
        try:
            result = concat(template.root_render_func(template.new_context({SCOPE: scope})))
            return _ended_like(result, source)
        except SparkopsError as error:
            # A filter or a lookup refused; it does not know where it stands.
            error.where = error.where or place_of(error, text)
            raise
        except EXPRESSION_ERRORS as error:
            raise blame(error, text, scope.names) from None

    def _finished(self, template: jinja2.Template, names: Mapping[str, Any], text: str, source: str = "") -> Any:
        scope = Scope(self, names)
        try:
            return finalize(self.run(template, scope, text, source))
        except EXPRESSION_ERRORS as error:
            raise blame(error, text, names) from None

    def render(self, text: str, names: Mapping[str, Any]) -> Any:
        return self._finished(self.template(text), names, text, text)

    def evaluate(self, expression: str, names: Mapping[str, Any]) -> Any:
        return self._finished(self.template(expression, bare=True), names, expression)

    def look_up(self, name: str, terms: list[Any], names: Mapping[str, Any], options: dict[str, Any]) -> list[Any]:
        """The values of a lookup whose terms are rendered already. Raises InputError."""
        template = self.template("query(sparkops_name, *sparkops_terms, **sparkops_options)", bare=True)
        given = {"sparkops_name": name, "sparkops_terms": terms, "sparkops_options": options}
        found = self._finished(template, ChainMap(given, names), "")  # type: ignore[arg-type]
        assert isinstance(found, list)
        return found

    def render_file(self, path: Path, names: Mapping[str, Any]) -> Any:
        """The native result: None for a file that gives nothing."""
        template, source = self._file(path)
        return self._finished(template, names, Text(str(path)), source)

    def _file(self, path: Path) -> tuple[jinja2.Template, str]:
        """A file's template and text, read again only when it has changed: most files are rendered for many hosts."""
        kept = self.files.get(path)
        if kept is not None and kept[0].is_up_to_date:
            return kept
        environment = self.beside(path)
        try:
            template = environment.get_template(path.name)
            assert environment.loader is not None
            source, _, _ = environment.loader.get_source(environment, path.name)
        except (jinja2.TemplateError, UnicodeDecodeError, RecursionError) as error:
            raise blame(error, path) from None
        self.files[path] = template, source
        return template, source

    def beside(self, path: Path) -> Environment:
        """The environment of a file: it finds others beside it, and has the options of its first line."""
        return self._other(path.parent, _options(read(path), str(path)))

    def _for(self, text: str) -> Environment:
        options = _options(text, position(text))
        return self._other(None, options) if options else self.inline

    def _other(self, folder: Path | None, options: dict[str, Any]) -> Environment:
        key = folder, *sorted(options.items())
        if key not in self.others:
            folders = [folder, *self.search] if folder else self.bases
            self.others[key] = self._environment(folders, folder is None, options)
        return self.others[key]

    def names(self, text: str, bare: bool = False) -> set[str]:
        """Names that a template (with `bare`: an expression) uses and does not set. Raises InputError."""
        key = str(text), bare
        if key not in self.mentioned:
            environment = self.bare if bare else self._for(text)
            try:
                tree = environment.parse_expression(text.strip()) if bare else environment.parse(text)
                self.mentioned[key] = frozenset(mentioned(self, tree))
            except (jinja2.TemplateError, RecursionError) as error:
                raise blame(error, text) from None
        return set(self.mentioned[key])

    def file_names(self, path: Path) -> set[str]:
        """The same for a file and all that it includes, imports or extends by a constant name."""
        kept = self.file_mentions.get(path)
        if kept is None or not kept.holds():
            kept = self.file_mentions[path] = mentioned_in_file(self, path, self.beside(path))
        return set(kept.names)


def _options(text: str, where: Position | str | None) -> dict[str, Any]:
    """What a template's first line sets, if it sets anything."""
    try:
        return overrides.split(text)[1]
    except InputError as error:
        error.where = where
        raise


def _ended_like(result: Any, source: str) -> Any:
    """A text gets the last newlines of its template back: Jinja drops one, and one after a block."""
    if not isinstance(result, str):
        return result
    missing_newlines = (len(source) - len(source.rstrip("\n"))) - (len(result) - len(result.rstrip("\n")))
    return result + "\n" * missing_newlines if missing_newlines > 0 else result
