"""What a value in an INI inventory means: a Python literal where it is one, else the text as it stands."""

from __future__ import annotations

import ast
import warnings
from typing import Any

from sparkops.errors import InputError, Position
from sparkops.project.values import Text, Unsafe


def literal(text: str, at: Position) -> Any:
    """`5` -> 5, `'5'` -> "5", `True` -> True, `[1, 'a']` -> a list, `yes` -> "yes". Raises InputError."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        value = text
    except (TypeError, RecursionError, MemoryError):
        raise InputError("the value looks like Python but cannot be built", where=at, hint="quote it twice") from None
    return _variable(value, at)


def _variable(value: Any, at: Position) -> Any:
    """Only the types that variables have: tuples and sets become lists; bytes and complex numbers texts.

    As in Ansible, bytes are never a template.
    """
    if isinstance(value, str):
        return Text(value, at)
    if isinstance(value, (list, tuple, set)):
        return [_variable(item, at) for item in value]
    if isinstance(value, dict):
        return {key: _variable(item, at) for key, item in value.items()}
    if isinstance(value, bytes):
        return Unsafe(value.decode("utf-8", "surrogateescape"), at)
    if value is ...:
        return Text("...", at)
    return Text(str(value), at) if isinstance(value, complex) else value
