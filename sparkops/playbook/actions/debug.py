"""Say something: a text, or the value of an expression.

Example:
    - name: Tell what was found
      debug:
        msg: "the driver is {{ driver.driver_version }}"
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sparkops.errors import InputError, UndefinedName
from sparkops.node.api import Arguments
from sparkops.playbook.action import Acted, Condition

if TYPE_CHECKING:
    from sparkops.playbook.scope import Scope


SILENT = "Verbosity threshold not met."


class Args(Arguments):
    msg: Any = "Hello world!"  # any value
    var: Condition | None = None  # an expression, in place of msg
    verbosity: int = 0  # left out unless the run is as verbose (-v, -vv ...)


def act(args: Args, scope: Scope) -> Acted:
    """Result: msg, or the expression with its value. An expression that is undefined says so, as in Ansible."""
    if args.verbosity > scope.values.get("ansible_verbosity", 0):
        return Acted("skipped", SILENT, {"skipped_reason": SILENT})
    if args.var is None:
        return Acted(msg=args.msg if isinstance(args.msg, str) else "", result={"msg": args.msg})
    if not isinstance(args.var, str):
        raise InputError(f"var is an expression, not {args.var!r}")
    try:
        value = scope.expression(args.var)
    except UndefinedName:
        value = "VARIABLE IS NOT DEFINED!"
    except InputError as error:
        raise InputError(f"var: {error.message}", where=error.where, hint=error.hint) from None
    return Acted(msg=f"{args.var}: {value}", result={str(args.var): value})
