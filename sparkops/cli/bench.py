"""`sparkops bench`: how fast served copies generate, beside what was published and what was measured before."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from sparkops.cli.options import Changing, Globals, asking, target, with_any_service, with_globals

if TYPE_CHECKING:
    from sparkops.cli.collect import Found
    from sparkops.events import Progress

UNKNOWN = "-"
HEAD = (
    "node", "service", "recipe", "prompt", "tokens", "streams", "decode tok/s", "total tok/s", "prefill tok/s",
    "ttft s", "accepted", "published", "last", "ceiling", "notes",
)  # fmt: skip


def _lengths(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> list[int]:
    """Lengths of prompts, given again and again or with commas between, each once."""
    words = [word.strip() for text in value for word in text.split(",")]
    for word in words:
        if not re.fullmatch("[1-9][0-9]{0,8}", word):
            raise click.BadParameter(f"{word[:40]!r} is no number of tokens; several as in 512,2048", ctx, param)
    return list(dict.fromkeys(map(int, words)))


@click.command()
@target
@with_any_service
@click.option(
    "--prompt-tokens",
    "lengths",
    metavar="N,...",
    multiple=True,
    default=["2048"],
    show_default="2048",
    callback=_lengths,
    help="Lengths of prompts, one after the other.",
)
@click.option("--tokens", type=click.IntRange(2), default=256, show_default=True, help="Length of each answer.")
@click.option("--runs", type=click.IntRange(1), default=3, show_default=True, help="Runs, after one to warm up.")
@click.option("--concurrency", type=click.IntRange(1), default=1, show_default=True, help="Streams at a time.")
@click.option(
    "--patience",
    type=click.FloatRange(0, min_open=True),
    default=300.0,
    show_default=True,
    metavar="SECONDS",
    help="Without any token for so long a copy has stalled.",
)
@click.option("-n", "--check", is_flag=True, help="Say what would be asked; ask nothing.")
@asking
@with_globals
def bench(
    given: Globals,
    pattern: str | None,
    all_nodes: bool,
    service: str | None,
    lengths: list[int],
    tokens: int,
    runs: int,
    concurrency: int,
    patience: float,
    check: bool,
    how: Changing,
) -> int:
    """Measure how fast copies generate: greedy streams of one length, asked for on the node itself, and their medians.

    Compared (ratios) with the recipe's published figures, the last measurement under the same conditions, and what the
    memory allows. The nodes remember. The exit code is 1 when a copy could not be measured.
    """
    from sparkops.cli.collect import collect
    from sparkops.cli.run import Workplace

    place = Workplace(given, "bench")
    values = {
        **{"service": service, "prompt_tokens": lengths, "tokens": tokens, "runs": runs},
        **{"concurrency": concurrency, "patience": patience},
    }
    chosen, telling = place.pattern(pattern, all_nodes), sys.stderr.isatty()
    found, code = collect(place, chosen, values, replace(how, check=check), progress=_tell if telling else None)
    known = {name: document(one) for name, one in found.items()}
    if code in (0, 4) and any(_short(one) for one in known.values()):
        # As in doctor: a failure goes before a node that could not be reached, and behind an interrupt.
        code = 1
    if given.as_json:
        click.echo(json.dumps({"nodes": known, "exit_code": code}, indent=2))
    else:
        click.echo(text(known))
    return code


def _tell(event: Progress) -> None:
    click.echo(f"{event.host}: {event.msg}", err=True)


def document(found: Found) -> dict[str, Any]:
    """A node's part: its copies as serving.bench compares them (null: not known), and why there are none, if so."""
    from sparkops.serving.bench import compared

    copies = found.results.get("serving_bench", {}).get("copies")
    return {
        "copies": None if copies is None else [compared(one) for one in copies],
        "trouble": found.trouble or None,
    }


def _short(node: Mapping[str, Any]) -> bool:
    """Whether a node that was reached has a copy without all its figures, or none at all."""
    copies = node["copies"]
    return copies is not None and (not copies or any(one["trouble"] for one in copies))


def text(known: Mapping[str, Mapping[str, Any]]) -> str:
    """The table."""
    from sparkops.cli.doctor import printable
    from sparkops.cli.table import table

    return table(HEAD, [[printable(word) for word in row] for name, one in known.items() for row in rows(name, one)])


def rows(name: str, node: Mapping[str, Any]) -> Iterator[list[str]]:
    """A node's lines: one a measurement, and one for what could not be measured."""
    blank = [UNKNOWN] * (len(HEAD) - 4)
    if not node["copies"]:
        yield [name, UNKNOWN, UNKNOWN, *blank, node["trouble"] or "nothing deployed"]
        return
    for copy in node["copies"]:
        head = [name, copy["service"], str(copy["recipe"] or UNKNOWN)]
        for one in copy["measured"]:
            yield [*head, *_figures(one)]
        if copy["trouble"]:
            yield [*head, *blank, copy["trouble"]]


def _figures(one: Mapping[str, Any]) -> list[str]:
    from sparkops.serving.bench import notes

    asked = [f"{one[name]:,}" for name in ("prompt_tokens", "tokens", "concurrency")]
    if "decode_tok_s" not in one:
        return [*asked, *[UNKNOWN] * (len(HEAD) - 7), f"would be asked {one['runs'] + 1} times, once to warm up"]
    published = next((figure for figure in one["published"] if figure["metric"] == "decode"), None)
    accepted, before, ceiling = one["accepted_per_draft"], one["before"], one["ceiling"]
    return [
        *asked,
        _spread(one["decode_tok_s"], 2),
        _spread(one["total_tok_s"], 1),
        _spread(one["prefill_tok_s"], 0),
        _spread(one["ttft_s"], 3),
        UNKNOWN if accepted is None else f"{accepted:.2f}",
        UNKNOWN if published is None else f"{_times(published['ratio'])} of {published['value']:g}",
        UNKNOWN if before is None else _times(before["ratios"]["decode_tok_s"]),
        UNKNOWN if ceiling is None else f"{_times(ceiling['ratio'])} of {ceiling['decode_tok_s']:g}",
        "; ".join(notes(one)),
    ]


def _spread(figure: Mapping[str, float], digits: int) -> str:
    low, high = (f"{figure[name]:.{digits}f}" for name in ("min", "max"))
    return f"{figure['median']:.{digits}f}" + (f" ({low}-{high})" if low != high else "")


def _times(ratio: float | None) -> str:
    return UNKNOWN if ratio is None else f"{ratio:.2f}x"
