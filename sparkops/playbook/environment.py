"""The Jinja environment: strict, sandboxed, native values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any

import jinja2
import jinja2.filters
import jinja2.tests
from jinja2 import nodes
from jinja2.lexer import TokenStream
from jinja2.nativetypes import NativeCodeGenerator
from jinja2.parser import Parser
from jinja2.runtime import Context, Macro
from jinja2.sandbox import SandboxedEnvironment
from jinja2.utils import missing

from sparkops.playbook import overrides
from sparkops.playbook.filters import FILTERS
from sparkops.playbook.lazy import finalize
from sparkops.playbook.lookups import GLOBALS
from sparkops.playbook.template import OMIT
from sparkops.playbook.tests import TESTS
from sparkops.playbook.undefined import Missing, first_missing, passing

# The key under which a template's context keeps its scope; no variable can have this name.
SCOPE = "\0scope"

# These look at undefined values themselves.
_ACCEPTING = frozenset(("default", "d", "mandatory", "ternary", "type_debug", "defined", "undefined"))


@cache
def plugins(kind: str) -> dict[str, Callable[..., Any]]:
    """All filters or tests, ours over Jinja's, each under its full name too."""
    theirs: Mapping[str, Any] = jinja2.filters.FILTERS if kind == "filter" else jinja2.tests.TESTS
    known = {**theirs, **(FILTERS if kind == "filter" else TESTS)}
    plain = {name: function if name in _ACCEPTING else passing(function) for name, function in known.items()}
    return plain | {f"ansible.builtin.{name}": function for name, function in plain.items() if name.isidentifier()}


def concat(parts: Iterable[Any]) -> Any:
    """One part is the value itself; several make a text, to which None and `omit` add nothing; none is None."""
    values = [part for part in parts if part is not None]
    if len(values) < 2:
        return values[0] if values else None
    return "".join(map(_shown, values))


def _shown(value: Any) -> str:
    if value is OMIT:
        return ""
    return str(finalize(value) if isinstance(value, (Mapping, list, tuple, Missing)) else value)


def _defined(value: Any) -> Any:
    """What `{{ }}` gives; undefined values are refused here, while the line of the template is known."""
    if isinstance(value, Missing):
        value._fail_with_undefined_error()
    return value


class _Context(Context):
    def resolve_or_missing(self, key: str) -> Any:
        if key in self.vars:
            return self.vars[key]
        scope = self.parent.get(SCOPE)
        found = missing if scope is None else scope.resolve(key)
        return super().resolve_or_missing(key) if found is missing else found


class _CodeGenerator(NativeCodeGenerator):
    @staticmethod
    def _output_const_repr(group: Iterable[Any]) -> str:
        """Keeps a lone constant's type: `{{ 1 }}` is 1."""
        return repr(concat(group))


class Environment(SandboxedEnvironment):
    """Ansible's Jinja. `literal`: backslashes in the strings of `{{ }}` stand for themselves, as in task files.

    `options`: what a template's `#jinja2:` line sets.
    """

    code_generator_class = _CodeGenerator
    context_class = _Context
    concat = staticmethod(concat)

    def __init__(self, loader: jinja2.BaseLoader | None, literal: bool, options: Mapping[str, Any] | None = None):
        given: dict[str, Any] = {"trim_blocks": True, **(options or {})}
        super().__init__(loader=loader, undefined=Missing, finalize=_defined, **given)
        self.literal = literal
        self.filters.update(plugins("filter"))
        self.tests.update(plugins("test"))
        self.globals.update(GLOBALS, omit=OMIT, ansible_managed="Managed by sparkops")

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        """Jinja's protocol; a call of or with something undefined is undefined."""
        if not (isinstance(__obj, Macro) or any(__obj is ours for ours in GLOBALS.values())):
            found = first_missing((__obj, *args, *kwargs.values()))
            if found is not None:
                return found
        return super().call(__context, __obj, *args, **kwargs)

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        text, _ = overrides.split(source)
        if text == source:
            return super()._parse(source, name, filename)
        try:
            tree = super()._parse(text, name, filename)
        except jinja2.TemplateSyntaxError as error:
            error.lineno += 1
            raise
        for node in tree.find_all(nodes.Node):
            node.lineno += 1
        return tree

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
