"""Lookups of variables: env, vars, varnames."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

from jinja2.runtime import Context
from jinja2.utils import missing

from sparkops.errors import InputError


def scope_of(context: Context) -> Any:
    """The render that a template's context belongs to."""
    return context.parent["\0scope"]


def _env(_: Context, terms: list[Any], default: Any = "") -> list[Any]:
    return [os.environ.get(_word(name).split()[0], default) for name in terms]


def _vars(context: Context, terms: list[Any], default: Any = None) -> list[Any]:
    values = []
    for name in map(_word, terms):
        value = scope_of(context).resolve(name)
        if value is missing:
            value = context.environment.undefined(name=name) if default is None else default
        values.append(value)
    return values


def _varnames(context: Context, terms: list[Any]) -> list[Any]:
    names = list(scope_of(context).names)
    return [name for term in terms for name in names if re.search(_word(term), name)]


def _word(term: Any) -> str:
    if not isinstance(term, str) or not term.strip():
        raise InputError(f"a name is a text, not {term!r}")
    return term


LOOKUPS: dict[str, Callable[..., list[Any]]] = {"env": _env, "vars": _vars, "varnames": _varnames}
