"""Set variables for this host, for the rest of the run.

Example:
    - name: Remember where it is
      set_fact:
        engine_path: "{{ found.stat.path }}"
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sparkops.errors import InputError
from sparkops.node.api import Arguments
from sparkops.playbook.action import Acted

if TYPE_CHECKING:
    from sparkops.playbook.scope import Scope


class Args(Arguments):
    cacheable: bool = False  # also as gathered facts (there is no cache of them between runs)

    open_ended = True


def act(args: Args, scope: Scope) -> Acted:  # noqa: ARG001
    """Result: ansible_facts with the variables."""
    values: dict[str, Any] = {name: value for name, value in vars(args).items() if name != "cacheable"}
    if not values:
        raise InputError("set_fact needs at least one variable")
    for name in values:
        if not str(name).isidentifier():
            raise InputError(f"{name!r} cannot be a variable's name")
    return Acted(result={"ansible_facts": values}, facts=values, cached=values if args.cacheable else {})
