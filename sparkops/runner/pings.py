"""Pings: a node whose cable is pulled must not wait for its controller for ever."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextlib import suppress

from sparkops.runner.hoststate import PING, HostState
from sparkops.transport.session import Session


class Pings:
    """Tells the nodes of all open sessions now and then that the controller is there."""

    def __init__(self, states: Iterable[HostState]) -> None:
        self._states = list(states)
        self._under_way: dict[Session, threading.Thread] = {}

    def go_on(self, over: threading.Event, every: float = PING) -> None:
        """Ping each `every` seconds until it is over."""
        while not over.wait(every):
            self.round()

    def round(self) -> None:
        """One ping for each session, on a thread of its own: one that is stuck keeps none of the others waiting."""
        self._under_way = {session: thread for session, thread in self._under_way.items() if thread.is_alive()}
        for state in self._states:
            for session in state.sessions():
                if session not in self._under_way:
                    self._under_way[session] = threading.Thread(target=_ping, args=(session,), daemon=True)
                    self._under_way[session].start()


def _ping(session: Session) -> None:
    # Whatever is wrong with the connection, the host's own thread finds it and says so.
    with suppress(Exception):
        session.ping()
