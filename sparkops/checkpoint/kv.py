"""How many tokens a KV pool holds: the arithmetic of vLLM 0.24 (v1/core/kv_cache_utils.py), from layers to tokens.

Layers of one kind share their blocks' tables. Kinds live in one pool of blocks of one size: a block is `group_size`
pages, one for each layer of a group; a kind with more layers than that has several groups, and each needs blocks of
its own.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

# The heuristic of _get_kv_cache_groups_uniform_page_size: below this ratio the smaller kind is padded.
PADDED_BELOW = 1.5


def ceil_div(dividend: int, divisor: int) -> int:
    """Division, rounded up."""
    return -(-dividend // divisor)


class Kind(Protocol):
    """What one layer keeps of a request. Two layers of equal kind share a group."""

    def pages(self, context: int, block_tokens: int) -> int:
        """Blocks that one request of `context` tokens holds at most."""


@dataclass(frozen=True)
class Full:
    """Attention to all tokens: keys and values (or MLA's latent) of each are kept."""

    def pages(self, context: int, block_tokens: int) -> int:
        """As many as the tokens fill."""
        return ceil_div(context, block_tokens)


@dataclass(frozen=True)
class Window:
    """Attention to the last `window` tokens; `step`: tokens that the engine computes at once."""

    window: int
    step: int

    def pages(self, context: int, block_tokens: int) -> int:
        """The window and what is being computed; one more, as a window starts anywhere in a block."""
        return ceil_div(min(self.window - 1 + self.step, context), block_tokens) + 1


@dataclass(frozen=True)
class State:
    """Linear attention: a state of fixed size, and one more for each token that is drafted."""

    draft: int

    def pages(self, context: int, block_tokens: int) -> int:
        """The same for every length."""
        del context, block_tokens
        return 1 + self.draft


@dataclass(frozen=True)
class Layout:
    """A model's cache. block_tokens: tokens of a block. page_bytes: of one layer in it. context: the request's
    tokens. groups: (kind, groups of it). group_size: layers of a group."""

    block_tokens: int
    page_bytes: int
    group_size: int
    groups: tuple[tuple[Kind, int], ...]

    @classmethod
    def of(cls, layers: Sequence[Kind], *, block_tokens: int, page_bytes: int) -> Layout:
        """Groups the layers as the engine does."""
        counts = Counter(layers)
        fewest, most = min(counts.values()), max(counts.values())
        size = most if most < fewest * PADDED_BELOW else fewest
        groups = tuple((kind, ceil_div(count, size)) for kind, count in counts.items())
        return cls(block_tokens, page_bytes, size, groups)

    @property
    def block_bytes(self) -> int:
        """Of a block, over all layers of a group."""
        return self.group_size * self.page_bytes

    def need(self, context: int) -> int:
        """Blocks for one request of `context` tokens."""
        return sum(count * kind.pages(context, self.block_tokens) for kind, count in self.groups)

    def blocks(self, pool: int) -> int:
        """Blocks in a pool of so many bytes."""
        return max(pool, 0) // self.block_bytes

    def longest(self, blocks: int, limit: int) -> int:
        """The longest request, up to `limit` tokens, that so many blocks hold; 0: none."""
        return bisect_right(range(1, limit + 1), blocks, key=self.need)


@dataclass(frozen=True)
class Capacity:
    """What a pool of `pool` bytes is for requests of `context` tokens, of a model that takes up to `limit`."""

    layout: Layout
    pool: int
    context: int
    limit: int

    @property
    def blocks(self) -> int:
        """In the pool."""
        return self.layout.blocks(self.pool)

    @property
    def need_blocks(self) -> int:
        """For one request of `context` tokens."""
        return self.layout.need(self.context)

    @property
    def need_bytes(self) -> int:
        """The same in bytes."""
        return self.need_blocks * self.layout.block_bytes

    @property
    def concurrency(self) -> float:
        """Requests of `context` tokens that the pool holds at once."""
        return self.blocks / self.need_blocks

    @property
    def tokens(self) -> int:
        """`GPU KV cache size` of the engine's log: rounded the way it does."""
        return int(self.concurrency * self.context)

    @property
    def max_context(self) -> int:
        """The longest request that the pool and the model allow."""
        return self.layout.longest(self.blocks, self.limit)
