"""What measured speeds are beside the recipe's published ones, the last ones, and the memory's limit. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

# A Spark's memory, bytes a second: each decode step reads the weights that it needs.
BANDWIDTH = 273e9
# metric of a recipe's published figure: the measured one.
PUBLISHED = {"decode": "decode_tok_s", "prefill": "prefill_tok_s", "time_to_first_token": "ttft_s"}
FIGURES = ("decode_tok_s", "total_tok_s", "prefill_tok_s", "ttft_s")
# What a measurement of another day may have been made with; where one differs it may be why.
MADE_WITH = ("release", "recipe", "model", "engine", "engine_version", "driver", "kernel")
VERSION = re.compile(r"\bvLLM (\d[\w.]*)")


def compared(copy: Mapping[str, Any]) -> dict[str, Any]:
    """A copy as serving_bench has it, with what each measurement compares to: `published`, `before`, `ceiling`.

    published: the recipe's figures of that prompt length, with metric, value, unit, date, conditions, ratio. before:
    the measurement before, with its ratios by figure and `differs` {what: [then, now]}. ceiling: {decode_tok_s, ratio}
    of what the memory allows one stream without a draft. Each is null or [] where there is nothing to compare with; a
    ratio is the measured median by the other one.
    """
    return {
        **{key: value for key, value in copy.items() if key not in ("published", "bytes_per_token")},
        "measured": [_measurement(copy, one) for one in copy["measured"]],
    }


def _measurement(copy: Mapping[str, Any], one: Mapping[str, Any]) -> dict[str, Any]:
    if "decode_tok_s" not in one:
        return dict(one)
    found = {"published": list(_published(copy, one)), "before": _before(copy, one), "ceiling": _ceiling(copy, one)}
    return {**one, **found}


def _published(copy: Mapping[str, Any], one: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Published speeds are of one stream; one that names another version of the engine is no measure for this one."""
    for figure in copy["published"] if one["concurrency"] == 1 else []:
        ours = PUBLISHED.get(figure["metric"])
        named = VERSION.search(figure.get("conditions") or "")
        if ours is None or figure.get("prompt_tokens") != one["prompt_tokens"]:
            continue
        # A build's own mark follows a plus: 0.24.0+cu130.
        if named is None or named[1] == (copy["engine_version"] or "").partition("+")[0]:
            kept = {key: figure.get(key) for key in ("metric", "value", "unit", "date", "conditions")}
            yield {**kept, "ratio": _ratio(one[ours]["median"], figure["value"])}


def _before(copy: Mapping[str, Any], one: Mapping[str, Any]) -> dict[str, Any] | None:
    before = one["before"]
    if before is None:
        return None
    ratios = {name: _ratio(one[name]["median"], before[name]["median"]) for name in FIGURES}
    now = {name: copy.get(name) for name in MADE_WITH}
    differs = {name: [before.get(name), now[name]] for name in MADE_WITH if before.get(name) != now[name]}
    return {**before, "ratios": ratios, "differs": differs}


def _ceiling(copy: Mapping[str, Any], one: Mapping[str, Any]) -> dict[str, Any] | None:
    if not copy["bytes_per_token"] or one["concurrency"] != 1 or one["accepted_per_draft"] is not None:
        return None
    ceiling = BANDWIDTH / copy["bytes_per_token"]
    return {"decode_tok_s": round(ceiling, 1), "ratio": _ratio(one["decode_tok_s"]["median"], ceiling)}


def _ratio(ours: float, theirs: float) -> float | None:
    return round(ours / theirs, 3) if theirs else None


def notes(one: Mapping[str, Any]) -> list[str]:
    """What a person should know of a compared measurement beside its figures."""
    found = [f"not clean: {warning}" for warning in one["warnings"]]
    if one["before"] is not None:
        differs = [f"{name} {then} -> {now}" for name, (then, now) in one["before"]["differs"].items()]
        found.append(f"the last was {one['before']['at']}" + (f": {', '.join(differs)}" if differs else ""))
    return found
