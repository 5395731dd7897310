"""A play's steps as a line of items, the way they go when all goes well, and what is left of it after a failure."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from sparkops.playbook.model import Block, Step, Task, tasks_in

Section = Literal["block", "rescue", "always"]


@dataclass(frozen=True)
class Level:
    """Where in a block an item stands; the same block may be entered twice, hence `entry`. order: the block's."""

    block: Block
    section: Section
    entry: int
    order: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Item:
    """A task in its blocks (the outermost first), or without one a mark: `flush` (handlers run here) or `reraise`
    (an `always` has ended after a failure, which goes on outwards from `path`). order: where it stands in the play.
    at: for `flush`, the place among the handlers from which on they run.
    """

    task: Task | None
    path: tuple[Level, ...] = ()
    mark: Literal["", "flush", "reraise"] = ""
    order: tuple[int, ...] = ()
    handler: bool = False
    at: int = 0


class Program:
    """Numbers items as it lines steps up, so that hosts can tell who is further.

    selects: which tasks there are at all (--tags).
    """

    def __init__(self, selects: Callable[[Task], bool]) -> None:
        self._entries = 0
        self._selects = selects

    def line(
        self,
        steps: tuple[Step, ...],
        path: tuple[Level, ...] = (),
        order: tuple[int, ...] = (),
        handler: bool = False,
    ) -> list[Item]:
        """The items of the selected steps, those of each block's `always` behind its own."""
        found: list[Item] = []
        for number, step in enumerate(steps):
            at = (*order, number)
            if isinstance(step, Task):
                if handler or self._selects(step):
                    found.append(Item(step, path, order=at, handler=handler))
                continue
            self._entries += 1
            entry = self._entries
            found += self.line(step.block, (*path, Level(step, "block", entry, at)), (*at, 0), handler)
            found += self.line(step.always, (*path, Level(step, "always", entry, at)), (*at, 2), handler)
        return found

    def rescues(self, item: Item) -> bool:
        """Whether a block around an item rescues its failure."""
        return any(self._rescues(level) for level in item.path)

    def _rescues(self, level: Level) -> bool:
        return level.section == "block" and any(map(self._selects, tasks_in(level.block.rescue)))

    def recover(self, failed: Item, queue: deque[Item]) -> bool:
        """Change `queue` to what comes after `failed` has failed. True when a rescue comes next; else what is left are
        the `always` that still run, and behind the last of a block a `reraise`.
        """
        for depth in range(len(failed.path) - 1, -1, -1):
            level, outer = failed.path[depth], failed.path[:depth]
            while queue and self._inside(queue[0], depth, level, level.section):
                queue.popleft()
            if self._rescues(level):
                rescue = Level(level.block, "rescue", level.entry, level.order)
                items = self.line(level.block.rescue, (*outer, rescue), (*level.order, 1), failed.handler)
                queue.extendleft(reversed(items))
                return True
            if level.section != "always" and any(map(self._selects, tasks_in(level.block.always))):
                queue.insert(self._always(queue, depth, level), Item(None, outer, "reraise", failed.order))
                return False
        queue.clear()
        return False

    @staticmethod
    def _inside(item: Item, depth: int, level: Level, section: Section) -> bool:
        if len(item.path) <= depth:
            return False
        return (item.path[depth].entry, item.path[depth].section) == (level.entry, section)

    def _always(self, queue: deque[Item], depth: int, level: Level) -> int:
        """How many items at the queue's head belong to the block's `always`."""
        count = 0
        while count < len(queue) and self._inside(queue[count], depth, level, "always"):
            count += 1
        return count
