"""`lookup('env', ...)` and its kind: values from the controller. `query` (and `q`) gives the list itself."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

from jinja2 import pass_context
from jinja2.runtime import Context

from sparkops.errors import InputError
from sparkops.playbook import lookup_files, lookup_lists, lookup_names
from sparkops.playbook.lazy import finalize
from sparkops.playbook.undefined import Missing, first_missing
from sparkops.project.near import did_you_mean

LOOKUPS: dict[str, Callable[..., list[Any]]] = {
    **lookup_names.LOOKUPS, **lookup_files.LOOKUPS, **lookup_lists.LOOKUPS,
}  # fmt: skip
_SHELL = "it runs a shell command on this machine; a command task with 'delegate_to: localhost' says so openly"
REFUSED = {
    "pipe": _SHELL,
    "lines": _SHELL,
    "password": "it writes a file of passwords; keep a secret in the environment and take it by lookup('env', ...)",
    "url": "it asks the network while the run is planned; a task that fetches says so openly",
    "unvault": "Ansible's vault is not supported; lookup('env', ...) or a file that only you can read",
    "csvfile": "read the file by lookup('file', ...) and its lines by splitlines() and split(',')",
    "ini": "read the file by lookup('file', ...) and the value by regex_search",
    "config": "it asks for Ansible's own settings",
    "inventory_hostnames": "groups['NAME'] has the hosts of a group",
    "flattened": "it is of community.general; the filter 'flatten' does it",
}


def _values(context: Context, name: str, *terms: Any, **options: Any) -> Any:
    """The values of a lookup; undefined when a term is. Raises InputError for one that is not supported."""
    plain = str(name).removeprefix("ansible.builtin.")
    if plain not in LOOKUPS:
        hint = REFUSED.get(plain) or did_you_mean(plain, LOOKUPS, f"there are: {', '.join(LOOKUPS)}")
        raise InputError(f"lookup({name!r}) is not supported", hint=hint)
    errors = options.pop("errors", "strict")
    options.pop("wantlist", None)
    given = options.values() if plain != "env" else ()
    found = first_missing((*terms, *given))
    if found is not None:
        return found
    try:
        return LOOKUPS[plain](context, [finalize(term) for term in terms], **options)
    except (InputError, OSError, TypeError, ValueError):
        if errors in ("ignore", "warn"):
            return None
        raise


@pass_context
def lookup(context: Context, name: str, *terms: Any, wantlist: bool = False, **options: Any) -> Any:
    """One value as it is, texts joined by commas, other values as a list."""
    values = _values(context, name, *terms, **options)
    if isinstance(values, Missing) or wantlist or not values:
        return [] if wantlist and values is None else values
    if len(values) == 1:
        return values[0]
    if all(isinstance(value, str) for value in values):
        return ",".join(values)
    return values


@pass_context
def query(context: Context, name: str, *terms: Any, **options: Any) -> Any:
    """`query`: always a list."""
    return lookup(context, name, *terms, **{**options, "wantlist": True})


def now(utc: bool = False, fmt: str | None = None) -> Any:
    """The moment, without a zone as Ansible has it."""
    moment = datetime.now(timezone.utc).replace(tzinfo=None) if utc else datetime.now()
    return moment.strftime(fmt) if fmt else moment


@pass_context
def undef(context: Context, hint: str | None = None) -> Any:
    """An undefined value, for a variable that somebody else must set."""
    if not isinstance(hint, (str, type(None))):
        raise InputError(f"'undef' takes a hint, not {hint!r}")
    return context.environment.undefined(hint=hint or "this must be set")


GLOBALS: dict[str, Callable[..., Any]] = {"lookup": lookup, "query": query, "q": query, "now": now, "undef": undef}
