"""`lookup('env', ...)` and its kind: values from the controller. `query` (and `q`) gives the list itself."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from jinja2 import pass_context
from jinja2.runtime import Context, Undefined
from jinja2.utils import missing

from sparkops.errors import InputError
from sparkops.playbook.lazy import finalize
from sparkops.project.near import did_you_mean
from sparkops.project.yaml import read

_REFUSED = {
    "pipe": "it runs a shell command on this machine; a command task with 'delegate_to: localhost' says so openly",
}


@pass_context
def query(context: Context, name: str, *terms: Any, **options: Any) -> list[Any]:
    """The values of a lookup. Raises InputError for one that is not supported."""
    plain = name.removeprefix("ansible.builtin.")
    if plain not in LOOKUPS:
        raise InputError(
            f"lookup({name!r}) is not supported",
            hint=_REFUSED.get(plain) or did_you_mean(plain, LOOKUPS, f"there are: {', '.join(LOOKUPS)}"),
        )
    wanted = [item for term in map(finalize, terms) for item in (term if isinstance(term, list) else [term])]
    errors = options.pop("errors", "strict")
    options.pop("wantlist", None)
    try:
        return LOOKUPS[plain](context, wanted, **options)
    except InputError:
        if errors in ("ignore", "warn"):
            return []
        raise


@pass_context
def lookup(context: Context, name: str, *terms: Any, wantlist: bool = False, **options: Any) -> Any:
    """One value as it is, texts joined by commas, other values as a list."""
    values = query(context, name, *terms, **options)
    if wantlist:
        return values
    if len(values) == 1:
        return values[0]
    if all(isinstance(value, str) for value in values):
        return ",".join(values)
    return values


def _env(_: Context, terms: list[Any], default: Any = "") -> list[Any]:
    return [os.environ.get(str(name), default) for name in terms]


def _find(context: Context, folder: str, name: str) -> Path:
    """A file by name, beside the playbook or in its `folder`."""
    tried = [place / name for base in _engine(context).bases for place in (base / folder, base)]
    path = Path(name).expanduser()
    for candidate in [path] if path.is_absolute() else tried:
        if candidate.is_file():
            return candidate
    where = ", ".join(str(candidate.parent) for candidate in tried) or "no folder"
    raise InputError(f"there is no file {name!r}", hint=None if path.is_absolute() else f"looked in {where}")


def _engine(context: Context) -> Any:
    return context.environment.globals["sparkops_engine"]


def _file(context: Context, terms: list[Any], rstrip: bool = True, lstrip: bool = False) -> list[Any]:
    texts = [read(_find(context, "files", str(name))) for name in terms]
    texts = [text.rstrip() if rstrip else text for text in texts]
    return [text.lstrip() if lstrip else text for text in texts]


def _template(context: Context, terms: list[Any], template_vars: dict[str, Any] | None = None) -> list[Any]:
    engine, scope = _engine(context), context.parent.get("\0scope")
    names = {**(scope.names if scope else {}), **(template_vars or {})}
    return [engine.render_file(_find(context, "templates", str(name)), names) for name in terms]


def _first_found(
    context: Context, terms: list[Any], files: Any = None, paths: Any = None, skip: bool = False
) -> list[Any]:
    """The path of the first file that exists; a term may be a mapping of files, paths and skip."""
    names = [*terms, *_listed(files)]
    folders = _listed(paths)
    for term in list(names):
        if isinstance(term, dict):
            names += _listed(term.get("files"))
            folders += _listed(term.get("paths"))
            skip = skip or bool(term.get("skip"))
    plain = [str(name) for name in names if not isinstance(name, dict)]
    for name in [f"{folder}/{name}" for folder in folders for name in plain] if folders else plain:
        try:
            return [str(_find(context, "files", name))]
        except InputError:
            continue
    if skip:
        return []
    raise InputError(f"none of these files exists: {', '.join(plain)}", hint="skip: true makes this no error")


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    if isinstance(value, str):
        return [part for part in value.replace(";", ",").replace(":", ",").split(",") if part]
    return list(value)


def _fileglob(context: Context, terms: list[Any]) -> list[Any]:
    found: list[str] = []
    for pattern in map(str, terms):
        bases = [place for base in _engine(context).bases for place in (base / "files", base)]
        for base in [Path("/")] if Path(pattern).is_absolute() else bases:
            paths = sorted(path for path in base.glob(pattern.lstrip("/")) if path.is_file())
            if paths:
                found += map(str, paths)
                break
    return found


def _vars(context: Context, terms: list[Any], default: Any = missing) -> list[Any]:
    values = []
    for name in terms:
        value = context.resolve(str(name))
        values.append(default if default is not missing and isinstance(value, Undefined) else value)
    return values


def _dict(_: Context, terms: list[Any]) -> list[Any]:
    return [{"key": key, "value": value} for mapping in terms for key, value in mapping.items()]


LOOKUPS: dict[str, Callable[..., list[Any]]] = {
    "env": _env, "file": _file, "template": _template, "first_found": _first_found, "fileglob": _fileglob,
    "vars": _vars, "dict": _dict, "items": lambda _, terms: terms, "list": lambda _, terms: terms,
}  # fmt: skip


def now(utc: bool = False, fmt: str | None = None) -> Any:
    moment = datetime.now(timezone.utc) if utc else datetime.now().astimezone()
    return moment.strftime(fmt) if fmt else moment


@pass_context
def undef(context: Context, hint: str | None = None) -> Any:
    """An undefined value, for a variable that somebody else must set."""
    return context.environment.undefined(hint=hint or "this must be set")


GLOBALS: dict[str, Callable[..., Any]] = {"lookup": lookup, "query": query, "q": query, "now": now, "undef": undef}
