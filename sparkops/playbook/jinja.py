"""The Jinja environment: strict, sandboxed, native values, variables that resolve lazily."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
from jinja2 import meta, nodes
from jinja2.lexer import TokenStream
from jinja2.nativetypes import NativeCodeGenerator
from jinja2.parser import Parser
from jinja2.runtime import Context, StrictUndefined
from jinja2.sandbox import SandboxedEnvironment
from jinja2.utils import missing

from sparkops.errors import InputError, SparkopsError, UndefinedName
from sparkops.playbook.blame import blame, place_of
from sparkops.playbook.filters import FILTERS
from sparkops.playbook.lazy import LazyDict, LazyList, finalize
from sparkops.playbook.lookups import GLOBALS
from sparkops.playbook.template import OMIT, is_template
from sparkops.playbook.tests import TESTS
from sparkops.project.values import Text

# What an expression that a user wrote can raise through filters, methods and operators.
EXPRESSION_ERRORS = (
    jinja2.TemplateError, ArithmeticError, AttributeError, LookupError, OSError, RuntimeError, TypeError, ValueError,
    re.error, AssertionError,
)  # fmt: skip

LOOKUP_CALLS = ("lookup", "query", "q")

# The key under which a template's context keeps its scope; no variable can have this name.
_SCOPE = "\0scope"


class Unknown(jinja2.UndefinedError):
    """An undefined value was used: `name`, looked up in `obj` (missing: among the variables)."""

    def __init__(self, message: str | None, name: Any, obj: Any) -> None:
        super().__init__(message)
        self.name = name
        self.obj = obj


class Missing(StrictUndefined):
    """An undefined value. Its attributes are undefined too, so that `a.b.c is defined` may be asked of nothing."""

    __slots__ = ()

    def __init__(self, hint: Any = None, obj: Any = missing, name: Any = None, exc: Any = None) -> None:
        # Jinja calls `exc` with the message and raises what comes back, so it need not be a class.
        raised: Any = exc or (lambda message: Unknown(message, name, obj))
        super().__init__(hint, obj, name, raised)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __getitem__(self, key: Any) -> Any:
        return self


class Broken(Missing):
    """A variable whose template failed for another reason than an undefined name: no default replaces it."""

    __slots__ = ()


def _defined(value: Any) -> Any:
    """What `{{ }}` gives; undefined values are refused here, while the line of the template is known."""
    if isinstance(value, Missing):
        value._fail_with_undefined_error()
    return value


class _Context(Context):
    def resolve_or_missing(self, key: str) -> Any:
        if key in self.vars:
            return self.vars[key]
        scope = self.parent.get(_SCOPE)
        found = missing if scope is None else scope.resolve(key)
        return super().resolve_or_missing(key) if found is missing else found


class _CodeGenerator(NativeCodeGenerator):
    @staticmethod
    def _output_const_repr(group: Iterable[Any]) -> str:
        """Keeps a lone constant's type: `{{ 1 }}` is 1."""
        constants = list(group)
        return repr(constants[0] if len(constants) == 1 else "".join(map(str, constants)))


class Environment(SandboxedEnvironment):
    """Ansible's Jinja. `literal`: backslashes in the strings of `{{ }}` stand for themselves, as in task files."""

    code_generator_class = _CodeGenerator
    context_class = _Context

    def __init__(self, loader: jinja2.BaseLoader | None, literal: bool) -> None:
        super().__init__(
            loader=loader,
            undefined=Missing,
            finalize=_defined,
            trim_blocks=True,
            extensions=["jinja2.ext.do"],
        )
        self.literal = literal
        self.filters.update(FILTERS)
        self.tests.update(TESTS)
        self.globals.update(GLOBALS, omit=OMIT, ansible_managed="Managed by sparkops")

    def _tokenize(
        self, source: str, name: str | None, filename: str | None = None, state: str | None = None
    ) -> TokenStream:
        if not self.literal or "\\" not in source:
            return super()._tokenize(source, name, filename, state)
        tokens = _escaped(self.lexer.tokeniter(self.preprocess(source, name, filename), name, filename, state))
        return TokenStream(self.lexer.wrap(tokens, name, filename), name, filename)

    def parse_expression(self, source: str) -> nodes.Template:
        """A bare expression as a template of nothing else. Raises jinja2.TemplateSyntaxError."""
        parser = Parser(self, source, state="variable")
        expression = parser.parse_expression()
        if not parser.stream.eos:
            raise jinja2.TemplateSyntaxError("chunk after expression", parser.stream.current.lineno)
        body: list[nodes.Node] = [nodes.Output([expression], lineno=1)]
        tree = nodes.Template(body, lineno=1)
        tree.set_environment(self)
        return tree


def _escaped(tokens: Iterator[tuple[int, str, str]]) -> Iterator[tuple[int, str, str]]:
    inside = False
    for line, kind, value in tokens:
        inside = kind == "variable_begin" or (inside and kind != "variable_end")
        yield line, kind, value.replace("\\", "\\\\") if inside and kind == "string" else value


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
            return missing
        value = self.view(self.names[name], name)
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
        return value

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
        self.inline = Environment(self._loader([]), literal=True)
        self.bare = Environment(None, literal=False)
        for environment in (self.inline, self.bare):
            environment.globals.update(sparkops_engine=self)
        self.templates: dict[tuple[str, bool], jinja2.Template] = {}
        self.mentioned: dict[tuple[str, bool], frozenset[str]] = {}
        self.folders: dict[Path, Environment] = {}

    def _loader(self, first: list[Path]) -> jinja2.BaseLoader:
        return jinja2.FileSystemLoader([*first, *self.search])

    def template(self, text: str, bare: bool = False) -> jinja2.Template:
        """Compiles a template, or with `bare` an expression. Raises InputError."""
        key = str(text), bare
        if key not in self.templates:
            environment = self.bare if bare else self.inline
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
            result = _concat(template.root_render_func(template.new_context({_SCOPE: scope})))
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

    def render_file(self, path: Path, names: Mapping[str, Any]) -> str:
        environment = self._beside(path)
        try:
            template = environment.get_template(path.name)
            assert environment.loader is not None
            source, _, _ = environment.loader.get_source(environment, path.name)
        except (jinja2.TemplateError, UnicodeDecodeError, RecursionError) as error:
            raise blame(error, path) from None
        result = self._finished(template, names, Text(str(path)), source)
        return "" if result is None else str(result)

    def _beside(self, path: Path) -> Environment:
        if path.parent not in self.folders:
            environment = Environment(self._loader([path.parent]), literal=False)
            environment.globals.update(sparkops_engine=self)
            self.folders[path.parent] = environment
        return self.folders[path.parent]

    def names(self, text: str, bare: bool = False) -> set[str]:
        """Names that a template (with `bare`: an expression) uses and does not set. Raises InputError."""
        key = str(text), bare
        if key not in self.mentioned:
            environment = self.bare if bare else self.inline
            try:
                tree = environment.parse_expression(text.strip()) if bare else environment.parse(text)
                found = meta.find_undeclared_variables(tree) - environment.globals.keys()
                self.mentioned[key] = frozenset(found.union(*map(self.file_names, self._looked_up(tree))))
            except (jinja2.TemplateError, RecursionError) as error:
                raise blame(error, text) from None
        return set(self.mentioned[key])

    def _looked_up(self, tree: nodes.Template) -> list[Path]:
        """The files of each lookup('template', 'NAME') whose name is a constant; one that is nowhere is left out."""
        found = []
        for call in tree.find_all(nodes.Call):
            words = [arg.value for arg in call.args if isinstance(arg, nodes.Const)]
            if isinstance(call.node, nodes.Name) and call.node.name in LOOKUP_CALLS and words[:1] == ["template"]:
                tried = [place / str(name) for name in words[1:] for place in self.search]
                found += [path for path in tried if path.is_file()][: len(words) - 1]
        return found

    def file_names(self, path: Path) -> set[str]:
        """The same for a file and all that it includes, imports or extends by a constant name."""
        environment = self._beside(path)
        assert environment.loader is not None
        found: set[str] = set()
        waiting, seen = [path.name], set()
        while waiting:
            name = waiting.pop()
            seen.add(name)
            try:
                source, _, _ = environment.loader.get_source(environment, name)
                tree = environment.parse(source, name, str(path.parent / name))
            except (jinja2.TemplateError, UnicodeDecodeError, RecursionError) as error:
                raise blame(error, path) from None
            found |= meta.find_undeclared_variables(tree) - environment.globals.keys()
            waiting += [other for other in meta.find_referenced_templates(tree) if other and other not in seen]
        return found


def _ended_like(result: Any, source: str) -> Any:
    """A text gets the last newlines of its template back: Jinja drops one, and one after a block."""
    if not isinstance(result, str):
        return result
    missing_newlines = (len(source) - len(source.rstrip("\n"))) - (len(result) - len(result.rstrip("\n")))
    return result + "\n" * missing_newlines if missing_newlines > 0 else result


def _concat(parts: Iterable[Any]) -> Any:
    """One part is the value itself; several make a text, to which None adds nothing; none is None."""
    values = [part for part in parts if part is not None]
    if len(values) < 2:
        return values[0] if values else None
    return "".join(str(finalize(value)) for value in values)
