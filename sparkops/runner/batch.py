"""The hosts that go through a play together: how many, where they wait for one another, when all must stop."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sparkops.errors import InputError, Position
from sparkops.playbook.model import Play


def batches(hosts: Sequence[str], serial: Sequence[Any], where: Position) -> list[list[str]]:
    """The hosts in batches of the sizes in `serial` (numbers or percentages; the last goes on). Raises InputError."""
    if not serial:
        return [list(hosts)]
    sizes = [_size(value, len(hosts), where) for value in serial]
    found: list[list[str]] = []
    left = list(hosts)
    while left:
        size = sizes[min(len(found), len(sizes) - 1)]
        found.append(left[:size] if size else left)
        left = left[size:] if size else []
    return found


def _size(value: Any, total: int, where: Position) -> int:
    """A batch's size; 0 means all. A percentage gives at least one host."""
    text = str(value).strip()
    try:
        if text.endswith("%"):
            return max(1, int(float(text[:-1]) / 100 * total))
        return max(0, int(text))
    except ValueError:
        raise InputError(f"serial is a number or a percentage, not {value!r}", where=where) from None


@dataclass(frozen=True)
class Budget:
    """How many hosts may fail before no more batches are begun: `most` of all hosts, or with `percent` that share of a
    batch's hosts, as in Ansible's max_fail_percentage. What a batch has begun it ends.
    """

    most: int
    percent: bool = False

    def __str__(self) -> str:
        return f"{self.most}{'%' if self.percent else ''}"

    def spent(self, failed: int, in_batch: int, size: int) -> bool:
        """Whether more have failed: `failed` so far, `in_batch` of the last batch's `size` hosts."""
        return in_batch * 100 > self.most * size if self.percent else failed > self.most


@dataclass(frozen=True)
class Meeting:
    """Hosts that have come to the same place, and how things stood when they all were there: `fatal` and `failed` as in
    Batch.
    """

    hosts: list[str]
    fatal: frozenset[tuple[int, ...]]
    failed: frozenset[str]


class Batch:
    """One batch in one play. Every method is safe from any thread.

    ended: it is over for all its hosts (end_batch, end_play); over: so is the play. fatal: where failures were that are
    failures of all hosts (any_errors_fatal, max_fail_percentage); they find out when they next meet.
    """

    def __init__(self, play: Play, hosts: Sequence[str], forks: int) -> None:
        self.hosts = list(hosts)
        self.failed: set[str] = set()
        self.ended = False
        self.over = False
        self.fatal: set[tuple[int, ...]] = set()
        self._shared: dict[tuple[int, ...], Any] = {}
        self._play = play
        self._slots = threading.Semaphore(forks)
        self._changed = threading.Condition()
        self._here = set(hosts)
        self._waiting: dict[str, tuple[int, ...]] = {}
        self._released: dict[str, Meeting] = {}

    def enter(self) -> None:
        """Take one of the places that `forks` allows."""
        self._slots.acquire()

    def leave(self, host: str, failed: bool) -> None:
        """A host has ended; nobody waits for it any more."""
        with self._changed:
            self._here.discard(host)
            if failed:
                self._fail(host)
            self._release()
            self._changed.notify_all()
        self._slots.release()

    def meet(self, host: str, order: tuple[int, ...]) -> Meeting:
        """Wait until every other host here has come to a meeting or has ended; those that wait at the earliest place
        go on together, in the batch's order. The place among `forks` is free for others meanwhile.
        """
        self._slots.release()
        try:
            with self._changed:
                self._waiting[host] = order
                self._release()
                while host not in self._released:
                    self._changed.wait()
                return self._released.pop(host)
        finally:
            self._slots.acquire()

    def share(self, order: tuple[int, ...], value: Any) -> None:
        """Give what a task that one host ran for all has brought."""
        with self._changed:
            self._shared[order] = value
            self._changed.notify_all()

    def wait_for(self, leader: str, order: tuple[int, ...]) -> Any:
        """What `leader` shares at a place; None when it has ended without."""
        self._slots.release()
        try:
            with self._changed:
                while order not in self._shared and leader in self._here:
                    self._changed.wait()
                return self._shared.get(order)
        finally:
            self._slots.acquire()

    def stop(self, play: bool = True) -> None:
        """End it for all (Ctrl-C, end_batch), and with `play` the batches behind it too."""
        with self._changed:
            self.ended = True
            self.over = self.over or play

    def fail_all(self, order: tuple[int, ...]) -> None:
        """A failure at a place is one of all hosts."""
        with self._changed:
            self.fatal.add(order)

    def _fail(self, host: str) -> None:
        self.failed.add(host)
        limit = self._play.max_fail_percentage
        if limit is not None and len(self.failed) * 100 > limit * len(self.hosts):
            self.fatal.add(())

    def _release(self) -> None:
        if not self._waiting or self._here - self._waiting.keys():
            return
        earliest = min(self._waiting.values())
        group = [host for host in self.hosts if self._waiting.get(host) == earliest]
        meeting = Meeting(group, frozenset(self.fatal), frozenset(self.failed))
        for host in group:
            del self._waiting[host]
            self._released[host] = meeting
        self._changed.notify_all()
