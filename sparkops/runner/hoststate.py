"""What a run knows of one host: its variables, facts, registered results, session, and handlers that are still due."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sparkops.errors import LeaseHeld
from sparkops.inventory.merge import Host
from sparkops.playbook.model import Play
from sparkops.playbook.scope import Scope
from sparkops.playbook.template import Templar
from sparkops.runner.options import Options
from sparkops.transport.address import Address, from_variables
from sparkops.transport.session import Session

FACTS = "ansible_facts"
OpenSession = Callable[[Address], Session]


@dataclass
class HostState:
    """One host through all plays of a run. `lost`: it has failed or is unreachable, and is left out from then on."""

    host: Host
    magic: Mapping[str, Any]
    facts: dict[str, Any] = field(default_factory=dict)
    registered: dict[str, Any] = field(default_factory=dict)
    pending: dict[str, list[str]] = field(default_factory=dict)
    session: Session | None = None
    lost: bool = False

    def values(self, play: Play, options: Options) -> dict[str, Any]:
        """All names, in Ansible's order of precedence, the strongest last."""
        return {
            **options.defaults,
            **self.host.vars,
            **self.facts,
            **play.vars,
            **self.registered,
            **options.extra,
            **self.magic,
            "ansible_check_mode": options.check,
            "ansible_diff_mode": options.diff,
        }

    def scope(self, templar: Templar, play: Play, options: Options) -> Scope:
        """The names as they stand now."""
        return Scope(templar, self.values(play, options))

    def address(self, templar: Templar, play: Play, options: Options) -> Address:
        """Where the host is; its connection variables may be templates."""
        return connection_address(self.host.name, self.values(play, options), templar, options.become_password)

    def open(self, connect: OpenSession, address: Address, options: Options) -> Session:
        """The session, opened with the first call. Raises HostUnreachable, LeaseHeld."""
        if self.session is not None:
            return self.session
        self.session = connect(address)
        self.session.send(
            {
                "op": "open",
                "state_dir": options.state_dir,
                "check": options.check,
                "lease": None if options.check or not options.lease else dict(options.about),
                "sudo_password": address.sudo_password,
            }
        )
        return self.session

    def greeted(self, message: dict[str, Any]) -> None:
        """The executor's answer to opening. Raises LeaseHeld."""
        if message["ev"] == "refused":
            by = message["by"]
            raise LeaseHeld(
                f"{by.get('who', 'another run')} is at work here"
                f" ({by.get('command', 'sparkops')}, since {by.get('since', 'some time')})",
                where=self.host.name,
                hint="wait until it is done; the lease ends with that run, also when it is killed",
            )
        self.pending = dict(message["pending"])

    def learn_facts(self, result: Mapping[str, Any]) -> None:
        """Facts from a result's ansible_facts: by their own names, and without the prefix in ansible_facts."""
        found = result.get(FACTS)
        if isinstance(found, Mapping):
            self.facts.update(found)
            short = {str(key).removeprefix("ansible_"): value for key, value in found.items()}
            self.facts[FACTS] = {**self.facts.get(FACTS, {}), **short}

    def close(self) -> None:
        """Hang up."""
        if self.session is not None:
            self.session.close()


CONNECTION = frozenset((
    "ansible_connection", "ansible_host", "ansible_port", "ansible_user", "ansible_ssh_private_key_file",
    "ansible_private_key_file", "ansible_ssh_common_args", "ansible_python_interpreter",
    "ansible_become_password", "ansible_become_pass", "ansible_timeout",
))  # fmt: skip


def connection_address(
    name: str, values: Mapping[str, Any], templar: Templar, become_password: str | None = None
) -> Address:
    """A host's address from its variables. `become_password` is for a host that has none of its own."""
    connection = {key: templar.render(values[key], values) for key in values if key in CONNECTION}
    if become_password is not None:
        connection.setdefault("ansible_become_password", become_password)
    return from_variables(name, connection)
