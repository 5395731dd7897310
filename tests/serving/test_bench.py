"""What measured speeds are beside others: as data."""

from __future__ import annotations

import datetime
from typing import Any

import msgspec
import pytest

from sparkops.recipes.load import Catalogue
from sparkops.serving.bench import compared, notes

SPEEDS = {"decode_tok_s": 40.0, "total_tok_s": 30.0, "prefill_tok_s": 4000.0, "ttft_s": 0.5}


def spread(**change: float) -> dict[str, Any]:
    return {name: {"median": value, "min": value, "max": value} for name, value in {**SPEEDS, **change}.items()}


ONE: dict[str, Any] = {
    **{"at": "2026-11-30T10:00:00Z", "prompt_tokens": 2048, "tokens": 256, "concurrency": 1, "runs": 3},
    **{"warnings": [], "accepted_per_draft": None, "before": None},
    **spread(),
}
COPY: dict[str, Any] = {
    **{"service": "vllm", "release": 2, "recipe": "fp8", "model": "m", "engine": "e", "engine_version": "0.24.0"},
    **{"driver": "580", "kernel": "6.17", "published": [], "bytes_per_token": None, "trouble": None},
    "measured": [ONE],
}
PUBLISHED: list[dict[str, Any]] = [
    {"metric": "decode", "value": 38.27, "unit": "tokens/s", "prompt_tokens": 2048, "conditions": "vLLM 0.24.0"},
    {"metric": "decode", "value": 38.70, "unit": "tokens/s", "prompt_tokens": 2048, "conditions": "vLLM 0.26.0"},
    {"metric": "decode", "value": 38.63, "unit": "tokens/s", "prompt_tokens": 512, "conditions": "vLLM 0.24.0"},
    {"metric": "prefill", "value": 5000.0, "unit": "tokens/s", "prompt_tokens": 2048, "conditions": "one stream"},
    {"metric": "time_to_first_token", "value": 1.0, "unit": "s", "prompt_tokens": 2048},
    {"metric": "startup", "value": 240.0, "unit": "s", "conditions": "approximate"},
]


def only(change: dict[str, Any], **copy: Any) -> dict[str, Any]:
    """The compared measurement."""
    (one,) = compared({**COPY, **copy, "measured": [{**ONE, **change}]})["measured"]
    found: dict[str, Any] = one
    return found


@pytest.mark.parametrize(
    ("change", "version", "wanted"),
    [
        ({}, "0.24.0", [("decode", 38.27, 1.045), ("prefill", 5000.0, 0.8), ("time_to_first_token", 1.0, 0.5)]),
        ({}, "0.26.0+cu130", [("decode", 38.70, 1.034), ("prefill", 5000.0, 0.8), ("time_to_first_token", 1.0, 0.5)]),
        ({}, None, [("prefill", 5000.0, 0.8), ("time_to_first_token", 1.0, 0.5)]),
        ({"prompt_tokens": 512}, "0.24.0", [("decode", 38.63, 1.035)]),
        ({"prompt_tokens": 513}, "0.24.0", []),
        ({"concurrency": 2}, "0.24.0", []),
    ],
)
def test_published_under_the_same_conditions(
    change: dict[str, Any], version: str | None, wanted: list[tuple[str, float, float]]
) -> None:
    found = only(change, published=PUBLISHED, engine_version=version)["published"]
    assert [(one["metric"], one["value"], one["ratio"]) for one in found] == wanted


def test_every_recipe_s_figures_can_be_compared() -> None:
    for recipe in map(Catalogue().recipe, Catalogue().names("recipes")):
        published = msgspec.to_builtins(recipe.published)
        speeds = [one for one in published if one["metric"] == "decode" and one["prompt_tokens"] == 2048]
        found = only({}, published=published)["published"]
        assert speeds and found, recipe.name
        assert datetime.date.fromisoformat(found[0]["date"])


def test_the_measurement_before() -> None:
    before = {
        **{key: COPY[key] for key in ("release", "recipe", "model", "engine", "engine_version", "driver", "kernel")},
        **{"at": "2026-11-29T10:00:00Z", "release": 1, "driver": "570"},
        **spread(decode_tok_s=20.0, ttft_s=0.25),
    }
    one = only({"before": before})
    assert one["before"]["ratios"] == {
        **{"decode_tok_s": 2.0, "total_tok_s": 1.0},
        **{"prefill_tok_s": 1.0, "ttft_s": 2.0},
    }
    assert one["before"]["differs"] == {"release": [1, 2], "driver": ["570", "580"]}
    assert notes(one) == ["the last was 2026-11-29T10:00:00Z: release 1 -> 2, driver 570 -> 580"]
    assert notes(only({"before": {**before, "release": 2, "driver": "580"}})) == ["the last was 2026-11-29T10:00:00Z"]
    assert only({})["before"] is None


@pytest.mark.parametrize(
    ("change", "size", "wanted"),
    [
        ({}, 5_460_000_000, {"decode_tok_s": 50.0, "ratio": 0.8}),
        ({}, None, None),
        ({"concurrency": 2}, 5_460_000_000, None),
        ({"accepted_per_draft": 1.5}, 5_460_000_000, None),
    ],
)
def test_what_the_memory_allows(change: dict[str, Any], size: int | None, wanted: Any) -> None:
    assert only(change, bytes_per_token=size)["ceiling"] == wanted


def test_what_was_only_said_is_compared_with_nothing() -> None:
    asked = {"prompt_tokens": 1, "tokens": 2, "concurrency": 1, "runs": 1}
    document = compared({**COPY, "measured": [asked]})
    assert document["measured"] == [asked]
    assert not {"published", "bytes_per_token"} & set(document)


def test_what_was_disturbed_says_so() -> None:
    assert notes(only({"warnings": ["others"]})) == ["not clean: others"]
