"""Runs a playbook for a verb: gathers what the project, the inventory and the options say, and reports."""

from __future__ import annotations

import functools
import getpass
import json
import shlex
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sparkops.cli.extra import sudo_password, variables
from sparkops.cli.options import Changing, Globals
from sparkops.errors import InputError
from sparkops.events import Emit, Notice
from sparkops.inventory.inventory import Inventory, load
from sparkops.node import bundle
from sparkops.playbook import modules
from sparkops.playbook.files import Files
from sparkops.playbook.parse import playbook
from sparkops.playbook.template import Templar
from sparkops.project import yaml
from sparkops.project.data import shipped
from sparkops.project.settings import Project
from sparkops.reporters import choose
from sparkops.runner.batch import Budget
from sparkops.runner.options import FORKS, Options
from sparkops.runner.run import Run, Target
from sparkops.transport import dial, lean
from sparkops.transport.address import Address
from sparkops.transport.session import Session

if TYPE_CHECKING:
    from sparkops.recipes.load import Catalogue

DEFAULTS = "defaults.yml"


class Workplace:
    """The project, its inventory and catalogue, as the global options name them, and the playbook to run.

    verb: the name of a shipped playbook, of which the user's copy wins; file: any playbook.
    """

    def __init__(self, given: Globals, verb: str | None = None, file: Path | None = None) -> None:
        self.given = given
        self.project = Project.find(given.directory, given.inventory)
        self.playbook = self.project.find_file("playbooks", f"{verb}.yml") if verb else file
        # A verb's playbook may be a user's copy without its defaults beside it.
        self._defaults = _defaults(shipped("playbooks")) if verb else {}

    @functools.cached_property
    def inventory(self) -> Inventory:
        """Hosts, with group_vars and host_vars beside the sources and beside the playbook. Raises InputError."""
        return load(self.project.sources(), also=[self.playbook.parent] if self.playbook else [])

    @functools.cached_property
    def catalogue(self) -> Catalogue:
        """Recipes, engines, patches and tools: the project's win."""
        from sparkops.recipes.load import Catalogue

        return Catalogue(self.project.roots())

    def defaults(self) -> dict[str, Any]:
        """The weakest variables: shipped, from the settings, and in defaults.yml beside the playbook."""
        beside = _defaults(self.playbook.parent) if self.playbook else {}
        return {**self._defaults, **_known_hosts(self.project), **beside}

    def pattern(self, pattern: str | None, all_nodes: bool) -> str:
        """The hosts that a verb is for. Raises InputError when neither a pattern nor --all-nodes was given."""
        if all_nodes:
            return "sparks" if "sparks" in self.inventory.groups else "all"
        if pattern is None:
            raise InputError("which nodes?", hint="name them (a host, a group, a pattern), or give --all-nodes")
        return pattern


def look(place: Workplace, how: Changing, wanted: Sequence[str]) -> int:
    """Read the workplace's playbook and list what is wanted of it; nothing is contacted. Raises InputErrors."""
    from sparkops.cli import listing

    given = place.given
    prepared = prepare(place, None, how, {}, lambda _: None)
    prepared.check_syntax()
    if wanted:
        listed = listing.document(prepared.plays(), prepared.options, wanted)
        text = json.dumps(listed, indent=2) if given.as_json else "\n".join(listing.lines(listed))
        click.echo(text)
    elif not given.as_json:
        click.echo(f"{place.playbook}: {len(prepared.plays())} plays, nothing wrong found")
    return 0


def run(
    place: Workplace,
    pattern: str | None,
    how: Changing,
    values: Mapping[str, Any],
    step: bool = False,
    through: Callable[[Emit], Emit] = lambda emit: emit,
    budget: Budget | None = None,
) -> int:
    """Run the workplace's playbook and give the exit code. `values` are variables that only -e beats; `through` may
    add to the events on their way to the reporter.
    """
    given = place.given
    with choose(json=given.as_json, stream=sys.stdout, verbosity=given.verbose, diff=how.diff) as reporter:
        prepared = prepare(place, pattern, how, values, through(reporter), step, budget=budget)
        prepared.check()
        code = prepared.execute()
    if how.exit_code and code == 0:
        return prepared.tally.exit_code(check_changes=how.check)
    return code


def prepare(
    place: Workplace,
    pattern: str | None,
    how: Changing,
    values: Mapping[str, Any],
    emit: Emit,
    step: bool = False,
    lease: bool = True,
    budget: Budget | None = None,
) -> Run:
    """A run of the workplace's playbook, not checked and not begun. Raises InputError."""
    assert place.playbook is not None
    extra = {**values, **variables(how.extra)}
    plays = playbook(place.playbook, functools.partial(_render, extra))
    options = Options(
        check=how.check,
        diff=how.diff,
        forks=1 if step else how.forks or place.project.settings.forks or FORKS,
        tags=_tags(how.tags),
        skip_tags=_tags(how.skip_tags),
        extra=extra,
        defaults=place.defaults(),
        become_password=sudo_password(how.ask_become_pass, how.become_password_file),
        about=about(),
        limit=how.limit,
        start_at=how.start_at_task,
        step=step,
        lease=lease,
        budget=budget,
    )
    project = place.project
    files = Files(project.folders, functools.partial(_patch, place))
    folders = [place.playbook.parent, *project.roots(), shipped("templates").parent]
    target = Target(
        place.inventory,
        "all" if pattern is None else pattern,
        how.limit,
        named=pattern is not None or how.limit is not None,
    )
    for warning in place.inventory.warnings:
        emit(Notice(warning))
    connector = Connector()
    return Run(plays, target, options, emit, files, connector, folders, connector.begin)


def _patch(place: Workplace, name: str) -> Mapping[str, Any]:
    import msgspec

    found: Mapping[str, Any] = msgspec.to_builtins(place.catalogue.patch(name))
    return found


def _render(extra: Mapping[str, Any], value: Any) -> Any:
    """A template that may use -e's variables alone."""
    return Templar().render(value, extra)


def _tags(given: Sequence[str]) -> frozenset[str]:
    return frozenset(tag.strip() for text in given for tag in text.split(",") if tag.strip())


def _defaults(folder: Path) -> dict[str, Any]:
    """The variables of defaults.yml in a folder of playbooks."""
    file = folder / DEFAULTS
    return dict(yaml.load(file) or {}) if file.exists() else {}


def _known_hosts(project: Project) -> dict[str, str]:
    file = project.known_hosts
    return {"ansible_ssh_common_args": f"-o UserKnownHostsFile={shlex.quote(str(file))}"} if file else {}


def about() -> dict[str, str]:
    """Who runs what, when: for the lease and the releases."""
    return {
        "who": f"{getpass.getuser()}@{socket.gethostname()}",
        "command": _told(sys.argv[1:]),
        "since": time.strftime("%Y-%m-%d %H:%M:%S %z"),
    }


def _told(words: Sequence[str]) -> str:
    """What others may know of a command line: the verb alone, since any other word may be a secret."""
    from sparkops.cli.main import VERBS

    return f"sparkops {next((word for word in words if word in VERBS), '')}".strip()


class Connector:
    """Opens sessions with an executor. It has all modules, so that what a node keeps of it serves any playbook."""

    def __init__(self) -> None:
        self._preamble = bundle.start(filter(modules.runs_on_node, modules.names()))
        self._begun: dict[Address, socket.socket] = {}

    def begin(self, addresses: Sequence[Address]) -> None:
        """Have connections under way for the sessions that will be asked for soon, and what makes these at hand, before
        a thread for each wants the interpreter.
        """
        for address in addresses:
            if plain := dial.begin(address):
                self._begun[address] = plain
        if self._begun:
            lean.load()
            from sparkops.transport import ssh  # noqa: F401

    def __call__(self, address: Address) -> Session:
        """See transport.ssh.connect."""
        if address.connection == "local":
            from sparkops.transport.local import LocalChannel

            return Session(LocalChannel(address.python), self._preamble, address.name)
        plain = dial.ahead(address, self._begun.pop(address, None))
        lean.load()
        from sparkops.transport.ssh import connect as over_ssh

        return Session(over_ssh(address, plain), self._preamble, address.name)
