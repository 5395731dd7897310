"""Which handlers a host owes: notified by their names or by what they listen to, run in their own order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from sparkops.playbook import modules
from sparkops.playbook.model import Task


class Due:
    """The handlers of a play that one host owes. name_of: a handler's name as it is for the host now."""

    def __init__(self, handlers: Sequence[Task], name_of: Callable[[Task], str]) -> None:
        self._handlers = handlers
        self._name_of = name_of
        self._notified: set[str] = set()
        self._due: set[int] = set()

    def __bool__(self) -> bool:
        return bool(self._notified or self._due)

    def for_node(self) -> bool:
        """Whether something may be due that the node has to do."""
        return any(modules.runs_on_node(one.module) or one.module == "include_tasks" for one in self._handlers)

    def unknown(self, names: Iterable[str]) -> list[str]:
        """Those of `names` that are no handler's."""
        known = {name for one in self._handlers for name in (self._name_of(one), one.name, *one.listen)}
        return sorted(set(names) - known)

    def notify(self, names: Iterable[str], at_once: bool = False) -> None:
        """Handlers are due with the next flush, or `at_once` when a handler that runs notifies them."""
        self._notified.update(names)
        if at_once:
            self._settle()

    def owe(self, names: Iterable[str]) -> None:
        """Handlers that an earlier run left behind are due; a name means just the handler that is called so."""
        called = [self._name_of(handler) for handler in self._handlers]
        written = [handler.name for handler in self._handlers]
        for name in names:
            known = called if name in called else written
            if name in known:
                self._due.add(known.index(name))
            else:
                self._notified.add(name)

    def take(self, start: int) -> tuple[list[tuple[int, Task]], int | None]:
        """(What is to run from place `start` on, where to look again). One that may notify others comes alone, since
        they may be due behind it; those before it wait for the next flush, as in Ansible.
        """
        self._settle()
        places = sorted(place for place in self._due if place >= start)
        if any(self._handlers[place].notify for place in places):
            places = places[:1]
        self._due -= set(places)
        return [(place, self._handlers[place]) for place in places], places[-1] + 1 if places else None

    def _settle(self) -> None:
        """From names to handlers: the first of several that are called the same, also of those that listen."""
        names = [self._name_of(handler) for handler in self._handlers]
        for notified in self._notified:
            if notified in names:
                self._due.add(names.index(notified))
            seen: set[str] = set()
            for place, handler in enumerate(self._handlers):
                if notified in handler.listen and names[place] not in seen:
                    seen.add(names[place])
                    self._due.add(place)
        self._notified = set()
