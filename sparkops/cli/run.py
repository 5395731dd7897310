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
from sparkops.runner.run import Run
from sparkops.transport.address import Address
from sparkops.transport.session import Session

DEFAULTS = "defaults.yml"


class Workplace:
    """The project, its inventory and catalogue, as the global options name them."""

    def __init__(self, given: Globals) -> None:
        self.given = given
        self.project = Project.find(given.directory, given.inventory)

    @functools.cached_property
    def inventory(self) -> Inventory:
        """Raises InputError."""
        return load(self.project.sources())

    @functools.cached_property
    def catalogue(self) -> Catalogue:
        """Recipes, engines, patches and tools: the project's win."""
        return Catalogue(self.project.roots())

    def pattern(self, pattern: str | None, all_nodes: bool) -> str:
        """The hosts that a verb is for. Raises InputError when neither a pattern nor --all-nodes was given."""
        if all_nodes:
            return "sparks" if "sparks" in self.inventory.groups else "all"
        if pattern is None:
            raise InputError("which nodes?", hint="name them (a host, a group, a pattern), or give --all-nodes")
        return pattern


def run_verb(place: Workplace, name: str, pattern: str, how: Changing, values: Mapping[str, Any]) -> int:
    """Run a verb's playbook: the user's copy, or the shipped one."""
    path = place.project.find_file("playbooks", f"{name}.yml")
    return run(place, path, pattern, how, values, _defaults(shipped("playbooks")))


def run(
    place: Workplace,
    path: Path,
    pattern: str | None,
    how: Changing,
    values: Mapping[str, Any],
    defaults: Mapping[str, Any] | None = None,
) -> int:
    """Run a playbook and give the exit code. With --json the recap is the last line also when the input is wrong.

    values: variables that only -e beats. defaults: the weakest; those in defaults.yml beside the playbook beat them.
    """
    given = place.given
    with choose(json=given.as_json, stream=sys.stdout, verbosity=given.verbose, diff=how.diff) as reporter:
        try:
            prepared = _prepare(place, path, pattern, how, values, defaults or {}, reporter)
        except SparkopsError as error:
            if given.as_json:
                reporter(Recap({}, error.exit_code))
            raise
        code = prepared.execute()
    if how.exit_code and code == 0:
        return prepared.tally.exit_code(check_changes=how.check)
    return code


def _prepare(
    place: Workplace,
    path: Path,
    pattern: str | None,
    how: Changing,
    values: Mapping[str, Any],
    defaults: Mapping[str, Any],
    reporter: Reporter,
) -> Run:
    plays = playbook(path)
    options = Options(
        check=how.check,
        diff=how.diff,
        forks=how.forks or place.project.settings.forks or FORKS,
        tags=_tags(how.tags),
        skip_tags=_tags(how.skip_tags),
        extra={**values, **variables(how.extra)},
        defaults={**defaults, **_known_hosts(place.project), **_defaults(path.parent)},
        become_password=sudo_password(how.ask_become_pass, how.become_password_file),
        about=about(),
    )
    files = Files(place.project.folders, lambda name: msgspec.to_builtins(place.catalogue.patch(name)))
    folders = [path.parent, *place.project.roots(), shipped("templates").parent]
    chosen = _within(pattern, how.limit)
    prepared = Run(plays, place.inventory, chosen, options, reporter, files, connector(plays), folders)
    prepared.check()
    return prepared


def _within(pattern: str | None, limit: str | None) -> str | None:
    if pattern is None or limit is None:
        return pattern or limit
    return ",".join(part for part in (pattern, *(f"&{one}" for one in limit.split(","))))


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
