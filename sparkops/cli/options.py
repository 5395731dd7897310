"""Options that verbs share."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import click

from sparkops.errors import SparkopsError

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Globals:
    """The four that stand before or after the verb."""

    directory: str | None
    inventory: tuple[str, ...]
    as_json: bool
    verbose: int


def with_globals(function: F) -> Callable[..., Any]:
    """The verb takes -C, -i, --json and -v too; it is called with `given: Globals` first."""

    @click.option("-C", "directory", metavar="DIR", help="Project folder (default: this one).")
    @click.option("-i", "inventory", metavar="SOURCE", multiple=True, help="Inventory file, folder, or host1,host2,")
    @click.option("--json", "as_json", is_flag=True, help="One JSON object a line on stdout.")
    @click.option("-v", "verbose", count=True, help="Say more; -vvv shows tracebacks.")
    @functools.wraps(function)
    def wrapper(directory: str | None, inventory: tuple[str, ...], as_json: bool, verbose: int, **rest: Any) -> Any:
        ctx = click.get_current_context()
        before: dict[str, Any] = ctx.find_root().obj or {}
        given = Globals(
            directory=directory or before.get("directory"),
            inventory=(*before.get("inventory", ()), *inventory),
            as_json=as_json or before.get("as_json", False),
            verbose=verbose + before.get("verbose", 0),
        )
        try:
            return function(given, **rest)
        except SparkopsError as error:
            # What a verb that runs prints ends with a recap, also when it never came to run.
            if given.as_json and "how" in rest:
                from sparkops.events import Recap, document

                click.echo(json.dumps(document(Recap({}, error.exit_code))))
            raise

    return wrapper


@dataclass(frozen=True)
class Changing:
    """The options of every verb that changes nodes."""

    limit: str | None
    check: bool
    exit_code: bool
    diff: bool
    forks: int | None
    extra: tuple[str, ...]
    tags: tuple[str, ...]
    skip_tags: tuple[str, ...]
    ask_become_pass: bool
    become_password_file: str | None
    start_at_task: str | None


# What a run that only looks is told, unless the user says more.
QUIET = Changing(
    limit=None,
    check=False,
    exit_code=False,
    diff=False,
    forks=None,
    extra=(),
    tags=(),
    skip_tags=(),
    ask_become_pass=False,
    become_password_file=None,
    start_at_task=None,
)
ASKED = ("limit", "forks", "extra", "ask_become_pass", "become_password_file")


def changing(function: F) -> Callable[..., Any]:
    """The verb takes what changing verbs take; it is called with `how: Changing`."""

    @click.option("-l", "--limit", metavar="PATTERN", help="Only these of the hosts.")
    @click.option("-n", "--check", is_flag=True, help="Say what would change; change nothing.")
    @click.option("--exit-code", is_flag=True, help="With --check: exit with 3 when something would change.")
    @click.option("--diff", is_flag=True, help="Show the differences in files.")
    @click.option("--forks", type=click.IntRange(1), metavar="N", help="Hosts at a time (default: 16).")
    @click.option("-e", "extra", metavar="NAME=VALUE", multiple=True, help="A variable, a JSON object, or @FILE.")
    @click.option("-t", "--tags", multiple=True, metavar="TAGS", help="Only tasks with these tags.")
    @click.option("--skip-tags", multiple=True, metavar="TAGS", help="No tasks with these tags.")
    @click.option("-K", "--ask-become-pass", is_flag=True, help="Ask for the sudo password.")
    @click.option("--become-password-file", metavar="FILE", help="Read the sudo password from a file.")
    @click.option("--start-at-task", metavar="NAME", help="Begin with the task of this name.")
    @click.option("--yes", is_flag=True, expose_value=False, help="Ask nothing.")
    @functools.wraps(function)
    def wrapper(*positional: Any, **rest: Any) -> Any:
        how = Changing(**{name: rest.pop(name) for name in Changing.__dataclass_fields__})
        return function(*positional, how=how, **rest)

    return wrapper


def asking(function: F) -> Callable[..., Any]:
    """The verb takes what verbs take that only look; it is called with `how: Changing`."""

    @click.option("-l", "--limit", metavar="PATTERN", help="Only these of the hosts.")
    @click.option("--forks", type=click.IntRange(1), metavar="N", help="Hosts at a time (default: 16).")
    @click.option("-e", "extra", metavar="NAME=VALUE", multiple=True, help="A variable, a JSON object, or @FILE.")
    @click.option("-K", "--ask-become-pass", is_flag=True, help="Ask for the sudo password.")
    @click.option("--become-password-file", metavar="FILE", help="Read the sudo password from a file.")
    @functools.wraps(function)
    def wrapper(*positional: Any, **rest: Any) -> Any:
        how = replace(QUIET, **{name: rest.pop(name) for name in ASKED})
        return function(*positional, how=how, **rest)

    return wrapper


def target(function: F) -> Callable[..., Any]:
    """The verb takes PATTERN or --all-nodes; it is called with `pattern` (None: not given) and `all_nodes`."""

    @click.argument("pattern", required=False)
    @click.option("--all-nodes", is_flag=True, help="The group `sparks`, or all hosts where there is none.")
    @functools.wraps(function)
    def wrapper(*positional: Any, **rest: Any) -> Any:
        if rest["all_nodes"] and rest["pattern"]:
            raise click.UsageError(f"give either a pattern or --all-nodes, not both ({rest['pattern']!r})")
        return function(*positional, **rest)

    return wrapper


# The service that verbs are about when none is named.
SERVICE = "vllm"


def _service(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """A service's name is part of a unit's and a folder's: no path, and no empty text of an unset variable."""
    if value is not None and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", value):
        raise click.BadParameter(
            f"{value!r} is no name: letters, digits and _.- with a letter or digit first", ctx, param
        )
    return value


def with_service(function: F) -> F:
    """The verb takes --service; it is called with `service: str`."""
    text = "Which of a node's services."
    option = click.option("--service", default=SERVICE, show_default=True, metavar="NAME", callback=_service, help=text)
    return option(function)


def with_drain(function: F) -> Callable[..., Any]:
    """The verb takes --drain; it is called with `drain`: the variable of that name, or none when it was not given."""

    @click.option(
        "--drain",
        "seconds",
        type=click.FloatRange(0),
        metavar="SECONDS",
        help="Wait so long for a moment without requests (default: 30); then those that run have 60 s more.",
    )
    @functools.wraps(function)
    def wrapper(*positional: Any, seconds: float | None, **rest: Any) -> Any:
        return function(*positional, drain={} if seconds is None else {"drain": seconds}, **rest)

    return wrapper


def with_any_service(function: F) -> F:
    """The verb takes --service; it is called with `service: str | None`, None for all that a node has."""
    text = "One of a node's services (default: all)."
    return click.option("--service", metavar="NAME", callback=_service, help=text)(function)
