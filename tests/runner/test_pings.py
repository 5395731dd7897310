"""Pings reach every node, whatever another connection is at."""

from __future__ import annotations

import threading

import pytest

from sparkops.inventory.merge import Host
from sparkops.runner.hoststate import HostState
from sparkops.runner.pings import Pings
from sparkops.transport.session import Session


class Fake:
    """A channel whose writes behind the first are `act`."""

    def __init__(self, act: object = None) -> None:
        self.act = act
        self.written = 0
        self.pinged = threading.Event()

    def write(self, data: bytes) -> None:
        assert data
        self.written += 1
        if self.written == 1:
            return
        self.pinged.set()
        if isinstance(self.act, threading.Event):
            self.act.wait(20)
        elif isinstance(self.act, Exception):
            raise self.act

    def read(self) -> bytes:
        return b""

    def last_words(self) -> str:
        return ""

    def close(self) -> None:
        pass


def begun(channel: Fake) -> Session:
    session = Session(channel, b"preamble", "x")
    session.flush()
    return session


def states(*sessions: Session) -> list[HostState]:
    found = [HostState(Host("x", {}, [])) for _ in sessions]
    for state, session in zip(found, sessions, strict=True):
        state.session = session
    return found


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_stuck_host_keeps_nobody_waiting() -> None:
    free = threading.Event()
    stuck, broken, well = Fake(free), Fake(ValueError("closed")), Fake()
    pings = Pings(states(begun(stuck), begun(broken), begun(well)))
    try:
        for round in range(3):
            well.pinged.clear()
            pings.round()
            assert well.pinged.wait(5), round
        # The stuck one is not asked again while it is.
        assert stuck.written == 2
    finally:
        free.set()


def test_a_session_that_is_writing_is_not_pinged() -> None:
    free = threading.Event()
    channel = Fake(free)
    session = begun(channel)
    session.send({"op": "window"})
    writer = threading.Thread(target=session.flush, daemon=True)
    writer.start()
    assert channel.pinged.wait(5)
    pinger = threading.Thread(target=session.ping, daemon=True)
    pinger.start()
    pinger.join(5)
    waited = pinger.is_alive()
    free.set()
    writer.join(5)
    assert not waited
    assert channel.written == 2
    session.ping()
    assert channel.written == 3
