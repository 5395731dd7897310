"""What a recipe's flags ask of the KV cache, and what that comes to."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from sparkops.checkpoint.recipe import flag, kv_cache_tokens, source, wanted
from sparkops.errors import InputError
from sparkops.lab.standin.checkpoints.configs import config
from sparkops.recipes.load import Catalogue
from sparkops.recipes.schema import Recipe
from sparkops.recipes.variables import recipe_variables


@pytest.fixture
def recipe() -> Recipe:
    return Catalogue().recipe("nvfp4-mtp")


def test_shipped(recipe: Recipe) -> None:
    found = wanted(recipe)
    assert (found.context, found.pool, found.utilization, found.serving.draft) == (262_144, 8 << 30, 0.5, 3)
    assert wanted(Catalogue().recipe("fp8")).serving.draft == 0


def test_flags(recipe: Recipe) -> None:
    args = ["--kv_cache_dtype=fp8", "--max-num-batched-tokens", "2048", "--block-size", "32"]
    found = wanted(msgspec.structs.replace(recipe, args=args)).serving
    assert (found.kv_dtype, found.step_tokens, found.block_tokens, found.draft) == ("fp8", 2048, 32, 0)
    assert flag(["--x", "1", "--x=2"], ["--x"]) == "2"
    assert flag(["--x"], ["--x"]) is None


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--speculative-config", "{"], "names no method"),
        (["--speculative-config", "[]"], "names no method"),
        (["--speculative-config", '{"method": "mtp"}'], "names no method"),
        (["--speculative-config", '{"method": "eagle3", "num_speculative_tokens": 3}'], "drafts by 'eagle3'"),
        (["--speculative-config", '{"method": "mtp", "num_speculative_tokens": -3}'], "is '-3', no number"),
        (["--block-size", "x"], "--block-size is 'x'"),
    ],
)
def test_bad_flags(recipe: Recipe, args: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        wanted(msgspec.structs.replace(recipe, args=args))


def test_source(recipe: Recipe) -> None:
    assert source(recipe, "/here") == "/here"
    with pytest.raises(InputError, match="does not say where") as caught:
        source(recipe, None)
    assert "--source" in (caught.value.hint or "")
    pinned = msgspec.structs.replace(recipe, model_source="hf:a/b", model_revision="v1")
    assert source(pinned, None) == "hf:a/b@v1"
    assert source(pinned, "hf:c/d") == "hf:c/d"


@pytest.mark.parametrize("name", ["bf16", "nvfp4", "nvfp4-mtp", "fp8"])
def test_the_tokens_of_the_log_come_from_the_config_alone(name: str) -> None:
    shipped = Catalogue().recipe(name)
    assert kv_cache_tokens(config(), recipe_variables(shipped)) == shipped.expect.kv_cache_tokens


@pytest.mark.parametrize(
    ("document", "change"),
    [
        (None, {}),
        ({}, {}),
        ({"model_type": "never-seen"}, {}),
        ({**config(), "text_config": {**config()["text_config"], "index_topk": 2048}}, {}),
        ({**config(), "text_config": {**config()["text_config"], "head_dim": "x"}}, {}),
        (config(), {"kv_cache_memory_bytes": None}),
        (config(), {"args": ["--kv-cache-dtype", "nvfp4"]}),
        (config(), {"max_model_len": "x"}),
    ],
)
def test_there_is_no_figure_of_what_is_not_known(document: dict[str, Any] | None, change: dict[str, Any]) -> None:
    assert kv_cache_tokens(document, {**recipe_variables(Catalogue().recipe("fp8")), **change}) is None
