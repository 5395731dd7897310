"""A play's steps as a line of items, the way they go when all goes well, and what is left of it after a failure."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Literal

from sparkops.playbook.model import Block, Step, Task

Section = Literal["block", "rescue", "always"]


@dataclass(frozen=True)
class Level:
    """Where in a block an item stands; the same block may be entered twice, hence `entry`."""

    block: Block
    section: Section
    entry: int


@dataclass(frozen=True, eq=False)
class Item:
    """A task in its blocks (the outermost first), or without one a mark: `flush` (handlers run here) or `reraise`
    (an `always` has ended after a failure, which goes on outwards from `path`). order: where it stands in the play.
    """

    task: Task | None
    path: tuple[Level, ...] = ()
    mark: Literal["", "flush", "reraise"] = ""
    order: tuple[int, ...] = ()
    handler: bool = False


class Program:
    """Numbers items as it lines steps up, so that hosts can tell who is further."""

    def __init__(self) -> None:
        self._entries = 0

    def line(self, steps: tuple[Step, ...], path: tuple[Level, ...] = (), order: tuple[int, ...] = ()) -> list[Item]:
        """The items of steps, those of each block's `always` behind its own."""
        found: list[Item] = []
        for number, step in enumerate(steps):
            at = (*order, number)
            if isinstance(step, Task):
                found.append(Item(step, path, order=at))
                continue
            self._entries += 1
            entry = self._entries
            found += self.line(step.block, (*path, Level(step, "block", entry)), (*at, 0))
            found += self.line(step.always, (*path, Level(step, "always", entry)), (*at, 2))
        return found

    @staticmethod
    def rescues(item: Item) -> bool:
        """Whether a block around an item rescues its failure."""
        return any(level.section == "block" and level.block.rescue for level in item.path)

    def recover(self, failed: Item, queue: deque[Item]) -> bool:
        """Change `queue` to what comes after `failed` has failed. True when a rescue comes next; else what is left are
        the `always` that still run, and behind the last of a block a `reraise`.
        """
        for depth in range(len(failed.path) - 1, -1, -1):
            level, outer = failed.path[depth], failed.path[:depth]
            while queue and self._inside(queue[0], depth, level, level.section):
                queue.popleft()
            if level.section == "block" and level.block.rescue:
                rescue = Level(level.block, "rescue", level.entry)
                items = self.line(level.block.rescue, (*outer, rescue), (*failed.order[:1], 1))
                queue.extendleft(reversed(items))
                return True
            if level.section != "always" and level.block.always:
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
