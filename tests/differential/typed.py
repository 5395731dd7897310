"""Values with their types, as JSON: what two engines gave is compared by this."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

PLAIN = (bool, int, float, str)


def typed(value: Any) -> Any:
    """[type, value]; texts, numbers and containers by the built-in type that they are."""
    if isinstance(value, Mapping):
        return ["dict", [[typed(key), typed(item)] for key, item in value.items()]]
    if isinstance(value, (list, tuple)):
        return ["list" if isinstance(value, list) else "tuple", [typed(item) for item in value]]
    if isinstance(value, (set, frozenset)):
        return ["set", sorted((typed(item) for item in value), key=repr)]
    for kind in PLAIN:
        if isinstance(value, kind):
            return [kind.__name__, repr(value) if kind is float else kind(value)]
    if value is None:
        return ["NoneType", None]
    if isinstance(value, date):
        return ["datetime" if isinstance(value, datetime) else "date", value.isoformat()]
    return [type(value).__name__, str(value)]
