"""Runs a playbook for a verb: gathers what the project, the inventory and the options say, and reports."""

from __future__ import annotations

import functools
import getpass
import shlex
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from sparkops.cli.extra import sudo_password, variables
from sparkops.cli.options import Changing, Globals
from sparkops.errors import InputError, SparkopsError
from sparkops.events import Recap
from sparkops.inventory.inventory import Inventory, load
from sparkops.node import bundle
from sparkops.playbook.files import Files
from sparkops.playbook.model import Play
from sparkops.playbook.parse import playbook
from sparkops.project import yaml
from sparkops.project.data import shipped
from sparkops.project.settings import Project
from sparkops.recipes.load import Catalogue
from sparkops.reporters import Reporter, choose
from sparkops.runner.options import FORKS, Options
from sparkops.runner.run import Run, Target
from sparkops.transport.address import Address
from sparkops.transport.session import Session

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


def run(place: Workplace, pattern: str | None, how: Changing, values: Mapping[str, Any]) -> int:
    """Run the workplace's playbook and give the exit code. `values` are variables that only -e beats.

    With --json the recap is the last line also when the input is wrong.
    """
    given = place.given
    with choose(json=given.as_json, stream=sys.stdout, verbosity=given.verbose, diff=how.diff) as reporter:
        try:
            prepared = _prepare(place, pattern, how, values, reporter)
        except SparkopsError as error:
            if given.as_json:
                reporter(Recap({}, error.exit_code))
            raise
        code = prepared.execute()
    if how.exit_code and code == 0:
        return prepared.tally.exit_code(check_changes=how.check)
    return code


def _prepare(
    place: Workplace, pattern: str | None, how: Changing, values: Mapping[str, Any], reporter: Reporter
) -> Run:
    assert place.playbook is not None
    plays = playbook(place.playbook)
    options = Options(
        check=how.check,
        diff=how.diff,
        forks=how.forks or place.project.settings.forks or FORKS,
        tags=_tags(how.tags),
        skip_tags=_tags(how.skip_tags),
        extra={**values, **variables(how.extra)},
        defaults=place.defaults(),
        become_password=sudo_password(how.ask_become_pass, how.become_password_file),
        about=about(),
    )
    project = place.project
    files = Files(project.folders, lambda name: msgspec.to_builtins(place.catalogue.patch(name)))
    folders = [place.playbook.parent, *project.roots(), shipped("templates").parent]
    target = Target(place.inventory, "all" if pattern is None else pattern, how.limit, named=pattern is not None or how.limit is not None)
    prepared = Run(plays, target, options, reporter, files, connector(plays), folders)
    prepared.check()
    return prepared


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
        "command": " ".join(["sparkops", *sys.argv[1:]])[:200],
        "since": time.strftime("%Y-%m-%d %H:%M:%S %z"),
    }


def connector(plays: Sequence[Play]) -> Callable[[Address], Session]:
    """Opens sessions with an executor that has just the modules these plays use."""
    used = {task.module for play in plays for task in (*play.tasks, *play.handlers)}
    preamble = bundle.preamble(used | {"setup"})

    def connect(address: Address) -> Session:
        if address.connection == "local":
            from sparkops.transport.local import LocalChannel

            return Session(LocalChannel(address.python), preamble, address.name)
        from sparkops.transport.ssh import connect as over_ssh

        return Session(over_ssh(address), preamble, address.name)

    return connect
