"""Where a host's variables come from: each value, its place, and the values that it beat."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sparkops.errors import InputError
from sparkops.inventory.groups import Layer, Origin
from sparkops.inventory.listing import jsonable
from sparkops.inventory.merge import Host
from sparkops.project.near import did_you_mean

MAGIC = "magic"


@dataclass(frozen=True)
class Said:
    """A value that something said a variable has. `by`: a group or host inline, its file of variables, or `magic`."""

    value: Any
    by: str
    where: Origin | None

    def document(self) -> dict[str, Any]:
        return {"value": jsonable(self.value), "by": self.by, "where": str(self.where) if self.where else None}


def explain(host: Host, variable: str | None = None) -> dict[str, list[Said]]:
    """Each variable, by name: all values that were said, the one that counts first. With a name: that one.

    Variables that sparkops gives itself are told only by name. Raises InputError for a name that nothing says.
    """
    found: dict[str, list[Said]] = {}
    for layer in reversed(host.layers):
        for name in layer.vars:
            found.setdefault(name, []).extend(_said(layer, name))
    if variable is None:
        return {name: found[name] for name in sorted(found) if found[name][0].by != MAGIC}
    if variable not in found:
        raise InputError(f"nothing gives {host.name!r} a variable {variable!r}", hint=did_you_mean(variable, found))
    return {variable: found[variable]}


def _said(layer: Layer, name: str) -> Iterator[Said]:
    yield Said(layer.vars[name], layer.name, layer.origins.get(name))
    for value, origin in reversed(layer.beaten.get(name, [])):
        yield Said(value, layer.name, origin)
