"""What a run knows of one host: its variables, facts, registered results, session, and handlers that are still due."""

from __future__ import annotations

import threading
from collections import ChainMap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sparkops.errors import ConnectionLost, LeaseHeld
from sparkops.inventory.merge import Host
from sparkops.playbook.model import Play
from sparkops.playbook.scope import Scope
from sparkops.playbook.template import Templar
from sparkops.runner.options import Options
from sparkops.transport.address import Address, from_variables
from sparkops.transport.session import Session

FACTS = "ansible_facts"
# Seconds between two pings, and after how many without one a node takes the controller for gone.
PING = 10.0
SILENCE = 60.0
# Seconds after which a stop is seen while a host is being connected to, and how long that may then still take.
STOPS_WITHIN = 0.5
GRACE = 2.0
OpenSession = Callable[[Address], Session]


class Attempt:
    """A connect under way, in a thread that nobody has to wait for."""

    def __init__(self, connect: OpenSession, address: Address) -> None:
        self.over = threading.Event()
        self._connect = connect
        self._address = address
        self._lock = threading.Lock()
        self._unwanted = False
        self._session: Session | None = None
        self._error: BaseException | None = None
        threading.Thread(target=self._run, name=f"connect {address.name}", daemon=True).start()

    def result(self) -> Session:
        """The session, once it is over. Raises what connecting raised."""
        if self._error is not None:
            raise self._error
        assert self._session is not None
        return self._session

    def give_up(self) -> None:
        """A session that comes after all is closed."""
        with self._lock:
            self._unwanted = True
            if self._session is not None:
                self._session.close()

    def _run(self) -> None:
        try:
            session = self._connect(self._address)
            with self._lock:
                self._session = session
                if self._unwanted:
                    session.close()
        except BaseException as error:
            self._error = error
        self.over.set()


@dataclass
class HostState:
    """One host through all plays of a run.

    facts: gathered. variables: registered results and what set_fact set. included: by include_vars. files: the
    play's vars_files. pending: handlers that the node still owes, by scope; None until it has said so. lost: it has
    failed or is unreachable, and is left out from then on. delegates: sessions with other hosts on its behalf. stop:
    set when the run is to end at once; the same for all hosts.
    """

    host: Host
    facts: dict[str, Any] = field(default_factory=dict)
    variables: dict[str, Any] = field(default_factory=dict)
    included: dict[str, Any] = field(default_factory=dict)
    files: dict[str, Any] = field(default_factory=dict)
    magic: Mapping[str, Any] = field(default_factory=dict)
    pending: dict[str, list[str]] | None = None
    session: Session | None = None
    lost: bool = False
    delegates: dict[str, Session] = field(default_factory=dict)
    stop: threading.Event = field(default_factory=threading.Event)
    _changing: threading.Lock = field(default_factory=threading.Lock)

    def scope(self, templar: Templar, play: Play, options: Options) -> Scope:
        """The names as they stand now, in Ansible's order of precedence."""
        weakest: dict[str, Any] = {FACTS: {}}
        below = ChainMap(self.files, play.vars, self.facts, self.host.vars, options.defaults, weakest)  # type: ignore[arg-type]
        own = {"inventory_hostname": self.host.name}
        forced = ChainMap(own, self.magic, options.extra)  # type: ignore[arg-type]
        return Scope(templar, below, forced, self.variables, self.included)

    def own(self) -> Mapping[str, Any]:
        """What `hostvars` shows of this host."""
        return ChainMap(self.variables, self.included, self.facts, self.host.vars)

    def address(self, scope: Scope, options: Options) -> Address:
        """Where the host is; its connection variables may be templates."""
        return connection_address(self.host.name, scope.values, scope.templar, options.become_password)

    def open(self, connect: OpenSession, address: Address, options: Options) -> Session:
        """The session, opened with the first call. Raises HostUnreachable, also when the run is being stopped."""
        self._go_on()
        if self.session is None:
            session = self._connected(connect, address)
            lease = None if options.check or not options.lease else dict(options.about)
            session.send(opening(address, options, lease))
            self._keep(session)
            return session
        return self.session

    def delegate(self, connect: OpenSession, address: Address, options: Options) -> Session:
        """A session with another host on this one's behalf: its own, and without that host's lease, which the host
        itself may hold in this run. Raises as open does.
        """
        self._go_on()
        if address.name not in self.delegates:
            session = self._connected(connect, address)
            session.send(opening(address, options, None))
            self._keep(session, address.name)
        return self.delegates[address.name]

    def _connected(self, connect: OpenSession, address: Address) -> Session:
        """What `connect` gives or raises; but a stop does not wait for a host that does not answer."""
        attempt = Attempt(connect, address)
        while not attempt.over.wait(STOPS_WITHIN):
            # One that answers is hung up on in order.
            if self.stop.is_set() and not attempt.over.wait(GRACE):
                attempt.give_up()
                self._go_on()
        return attempt.result()

    def _go_on(self) -> None:
        if self.stop.is_set():
            raise ConnectionLost("interrupted", where=self.host.name)

    def _keep(self, session: Session, delegate: str | None = None) -> None:
        """Take a new session in, unless the run was stopped while it was made: then nothing else would close it."""
        with self._changing:
            stopped = self.stop.is_set()
            if not stopped and delegate is not None:
                self.delegates[delegate] = session
            elif not stopped:
                self.session = session
        if stopped:
            session.close()
            self._go_on()

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

    def sessions(self) -> list[Session]:
        """Those that are open. From any thread."""
        with self._changing:
            return [session for session in [self.session, *self.delegates.values()] if session is not None]

    def close(self) -> None:
        """Hang up. From any thread."""
        for session in self.sessions():
            session.close()

    def reset(self) -> None:
        """Hang up; what comes next opens new sessions."""
        self.close()
        with self._changing:
            self.session = None
            self.delegates = {}


def opening(address: Address, options: Options, lease: dict[str, Any] | None) -> dict[str, Any]:
    """The first frame of a session."""
    return {
        "op": "open",
        "state_dir": options.state_dir,
        "check": options.check,
        "lease": lease,
        "sudo_password": address.sudo_password,
        "silence": SILENCE,
    }


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
