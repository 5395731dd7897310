"""Which keys a module's result has, read from its source."""

from __future__ import annotations

import ast
from collections.abc import Iterator

_MAKERS = ("ok", "changed", "skipped", "unknown")


def result_keys(tree: ast.Module) -> list[str]:
    """The keys that `Outcome.ok(...)` and its kind, `Failure(...)` and the result of `Acted(...)` are given, in order.

    Those in a mapping by name (`**said`) count when it is written out in this file.
    """
    keys: list[str] = []
    spread: list[str] = []
    for call in ast.walk(tree):
        if not (isinstance(call, ast.Call) and _makes_a_result(call.func)):
            continue
        if _is(call.func, "Acted"):
            given = next((one.value for one in call.keywords if one.arg == "result"), (*call.args, None, None, None)[2])
            keys += _literal(given)
            spread += [given.id] if isinstance(given, ast.Name) else []
            continue
        keys += [keyword.arg for keyword in call.keywords if keyword.arg]
        spread += [
            keyword.value.id for keyword in call.keywords if isinstance(keyword.value, ast.Name) and not keyword.arg
        ]
    for name in dict.fromkeys(spread):
        keys += [key for node in ast.walk(tree) for key in _written(node, name)]
    return [key for key in dict.fromkeys(keys) if key != "diff"]


def _makes_a_result(function: ast.expr) -> bool:
    if isinstance(function, ast.Attribute):
        return function.attr in _MAKERS and _is(function.value, "Outcome")
    return _is(function, "Failure") or _is(function, "Acted")


def _written(node: ast.AST, name: str) -> Iterator[str]:
    """The keys that a mapping of that name gets here: by a literal, `name["key"] = ...` or `name.update(key=...)`."""
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if _is(target, name):
                yield from _literal(node.value)
            if isinstance(target, ast.Subscript) and _is(target.value, name) and isinstance(target.slice, ast.Constant):
                yield str(target.slice.value)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _is(node.func.value, name):
        yield from (keyword.arg for keyword in node.keywords if keyword.arg and node.func.attr == "update")


def _literal(mapping: ast.expr | None) -> list[str]:
    """The keys that a mapping is written with."""
    keys = mapping.keys if isinstance(mapping, ast.Dict) else []
    return [str(key.value) for key in keys if isinstance(key, ast.Constant)]


def _is(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
