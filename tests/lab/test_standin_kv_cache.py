"""KV figures: what the real engine logged for this geometry."""

from __future__ import annotations

import pytest

from sparkops.lab.standin.checkpoints.configs import text_config
from sparkops.lab.standin.vllm.engine.kv_cache import GIB, KVCache

LENGTH = 262_144


@pytest.mark.parametrize(
    ("draft", "pool", "block", "need", "blocks", "tokens", "concurrency"),
    [
        (0, 8, 1056, 252, 397, 412_980, "1.58"),
        (0, 6, 1056, 252, 297, 308_955, "1.18"),
        (3, 8, 1072, 257, 355, 362_105, "1.38"),
    ],
)
def test_published_figures(
    draft: int, pool: int, block: int, need: int, blocks: int, tokens: int, concurrency: str
) -> None:
    cache = KVCache(text_config(), length=LENGTH, draft=draft)
    assert (cache.block_size, cache.need, cache.blocks(pool * GIB)) == (block, need, blocks)
    assert cache.tokens(pool * GIB) == tokens
    assert f"{cache.concurrency(pool * GIB):.2f}" == concurrency
    cache.check(pool * GIB)


def test_a_block_s_bytes() -> None:
    assert KVCache(text_config(), length=LENGTH).block_bytes == 21_626_880


def test_a_pool_too_small_says_what_would_fit() -> None:
    cache = KVCache(text_config(), length=LENGTH)
    with pytest.raises(ValueError, match=r"max seq len \(262144\), \(5\.08 GiB KV cache is needed") as caught:
        cache.check(4 * GIB)
    assert "KV cache memory (4.0 GiB)" in str(caught.value)
    assert "estimated maximum model length is 205920." in str(caught.value)
    KVCache(text_config(), length=205_920).check(4 * GIB)
    with pytest.raises(ValueError, match="205921"):
        KVCache(text_config(), length=205_921).check(4 * GIB)


def test_the_smallest_pool_that_serves() -> None:
    cache = KVCache(text_config(), length=LENGTH)
    cache.check(cache.need_bytes)
    with pytest.raises(ValueError, match="at least one request"):
        cache.check(cache.need_bytes - 1)
