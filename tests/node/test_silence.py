"""A controller that is silent for too long counts as gone; one that pings does not."""

from __future__ import annotations

import os
import time

import pytest

from sparkops.node.frames import Closed, Link, pack


@pytest.fixture
def link() -> tuple[Link, int]:
    source, feed = os.pipe()
    found = Link(source, feed)
    found.silence = 0.4
    return found, feed


def test_silence_ends_a_wait(link: tuple[Link, int]) -> None:
    begun = time.monotonic()
    with pytest.raises(Closed):
        link[0].receive()
    assert 0.3 < time.monotonic() - begun < 2


def test_silence_ends_work_too_and_pings_do_not_count_as_messages(link: tuple[Link, int]) -> None:
    it, feed = link
    os.write(feed, pack({"op": "ping"}) + pack({"op": "close"}))
    it.check()
    assert it.poll() == ({"op": "close"}, b"")
    assert it.poll() is None
    time.sleep(0.3)
    os.write(feed, pack({"op": "ping"}))
    it.check()
    time.sleep(0.3)
    it.check()
    time.sleep(0.3)
    with pytest.raises(Closed):
        it.check()
