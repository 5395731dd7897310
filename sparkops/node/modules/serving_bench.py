"""How fast served copies generate: tokens a second, measured from the node itself, and remembered there.

Each run asks for greedy answers of a fixed length to prompts that no cache knows, and a first one is not counted.

Example:
    - name: Measure the copy
      serving_bench:
        home: /opt/sparkops
        service: vllm
        prompt_tokens: [2048, 8192]
"""

from __future__ import annotations

import os

from sparkops.node import drift, nvidia, releases, serving_probe, speed, speed_record, systemd
from sparkops.node.api import Arguments, Failure, Node, Outcome, Path
from sparkops.node.facts import read
from sparkops.node.serving_probe import NotYet, Wrong

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

# Prometheus names of vLLM 0.24.0, without prefix.
LOAD = {"running": "num_requests_running", "waiting": "num_requests_waiting"}
PROMPTS, CACHED = "prompt_tokens_total", "prefix_cache_hits_total"
DRAFTS, ACCEPTED = "spec_decode_num_drafts_total", "spec_decode_num_accepted_tokens_total"


class Args(Arguments):
    """prompt_tokens: lengths of prompts, measured one after the other. tokens: how many each answer has. runs: counted
    ones. concurrency: streams at a time. patience: seconds without any token after which a copy counts as stalled.
    """

    home: Path  # sparkops_home
    service: str | None = None  # one service; left out, all that have a release here
    scope: Literal["system", "user"] = "system"
    prompt_tokens: list[int] = [2048]
    tokens: int = 256
    runs: int = 3
    concurrency: int = 1
    patience: float = 300.0


def apply(args: Args, node: Node) -> Outcome:
    """Always ok; a copy that can't be measured has `trouble`. Check mode sends nothing.

    Result: copies, each with service, release, recipe, model, max_model_len, engine, engine_version, driver, kernel,
    published and bytes_per_token (the recipe's), trouble (null: none), measured. Each measured: at (UTC),
    prompt_tokens, tokens, concurrency, runs, warnings, accepted_per_draft (null: no draft), before (the last one
    remembered under the same conditions and undisturbed, or null), and {median, min, max} of decode_tok_s (one
    stream's tokens after its first), total_tok_s (all streams', from the first request to the last end), prefill_tok_s
    (prompt tokens until the last stream's first token), ttft_s (seconds to the first token); in check mode the
    conditions alone.
    """
    if not args.prompt_tokens or min([*args.prompt_tokens, args.runs, args.concurrency]) < 1 or args.tokens < 2:
        raise Failure("prompt_tokens, runs and concurrency must be 1 at least, and tokens 2")
    if args.patience <= 0:
        raise Failure("patience must be more than 0 seconds")
    names = releases.services(args.home) if args.service is None else [args.service]
    beneath = {"driver": nvidia.gpu(node)["driver"], "kernel": os.uname().release}
    copies = []
    # One after the other: they share a GPU.
    for name in names:
        copy = {**_about(args.home, name), **beneath}
        copies.append(copy)
        try:
            _measure(args, node, copy)
        except (NotYet, Wrong) as error:
            copy["trouble"] = str(error)
    for copy in copies:
        copy.pop("url")
    return Outcome.ok(copies=copies)


def _about(home: str, service: str) -> dict[str, Any]:
    folder = releases.service_folder(home, service)
    current = os.path.join(folder, "current")
    about, serve, recipe = (
        drift.document(os.path.join(current, name)) for name in (releases.META, "serve.json", "recipe.json")
    )
    return {
        "service": service,
        "release": releases.linked(folder),
        "recipe": about.get("recipe"),
        "model": serve.get("model"),
        "url": serve.get("url"),
        "engine": about.get("engine"),
        "engine_version": None,
        "published": recipe.get("published") or [],
        "bytes_per_token": (recipe.get("checkpoint") or {}).get("bytes_per_token"),
        "max_model_len": serve.get("max_model_len"),
        "trouble": None,
        "measured": [],
    }


def _measure(args: Args, node: Node, copy: dict[str, Any]) -> None:
    """Fill in what the copy's measurements are. Raises NotYet, Wrong."""
    if copy["release"] is None:
        raise Wrong("nothing deployed")
    if not isinstance(copy["url"], str) or not isinstance(copy["model"], str):
        raise Wrong(f"release {copy['release']} does not say where it serves; deploy it again")
    env = os.path.join(releases.service_folder(args.home, copy["service"]), "current", "env")
    server = serving_probe.Server(copy["url"], serving_probe.api_key(read(env)), node)
    if node.check:
        _fits(args, copy)
        copy["measured"] = [_conditions(args, length) for length in args.prompt_tokens]
        return
    _healthy(server, args, copy, node)
    _fits(args, copy)
    load = _metrics(server)
    busy = [f"{load[theirs]:.0f} {ours}" for ours, theirs in LOAD.items() if load.get(theirs)]
    warnings = [f"others were using it: {' and '.join(busy)} before"] if busy else []
    prompts = speed.Prompts(server, copy["model"], max(args.prompt_tokens))
    for length in args.prompt_tokens:
        one = {**_conditions(args, length), **_runs(server, args, prompts, copy, length, list(warnings), node)}
        about = {name: copy[name] for name in ("release", "recipe", "model", "engine", "engine_version")}
        remembered = {**about, "driver": copy["driver"], "kernel": copy["kernel"], **one}
        before = speed_record.before(speed_record.read(node.state_dir, copy["service"]), one)
        speed_record.add(node.state_dir, copy["service"], remembered)
        copy["measured"].append({**one, "before": before})


def _conditions(args: Args, length: int) -> dict[str, Any]:
    return {"prompt_tokens": length, "tokens": args.tokens, "concurrency": args.concurrency, "runs": args.runs}


def _healthy(server: serving_probe.Server, args: Args, copy: dict[str, Any], node: Node) -> None:
    """It answers, and with its own model. Raises NotYet, Wrong; a unit that does not run is named."""
    try:
        serving_probe.expect(server.ask("/health", None, serving_probe.QUICK), "/health")
        models = serving_probe.expect(server.ask("/v1/models", None, serving_probe.QUICK), "/v1/models")
    except NotYet as error:
        unit = releases.unit_of(copy["service"])
        state = systemd.Manager(node, args.scope).show(unit).get("ActiveState", "unknown")
        raise NotYet(f"it does not serve ({unit} is {state}): {error}") from None
    served = {one["id"]: one for one in models["data"]} if isinstance(models, dict) and "data" in models else {}
    if copy["model"] not in served:
        raise Wrong(f"the server there serves {', '.join(served) or 'no model'}, not {copy['model']}")
    copy["max_model_len"] = served[copy["model"]].get("max_model_len") or copy["max_model_len"]
    status, said = server.ask("/version", None, serving_probe.QUICK)
    copy["engine_version"] = said.get("version") if status == 200 and isinstance(said, dict) else None


def _fits(args: Args, copy: dict[str, Any]) -> None:
    longest, limit = max(args.prompt_tokens), copy["max_model_len"]
    if isinstance(limit, int) and longest + args.tokens > limit:
        raise Wrong(
            f"a prompt of {longest:,} tokens and {args.tokens:,} generated do not fit its max_model_len {limit:,}: "
            f"ask for a prompt of {max(limit - args.tokens, 0):,} at most"
        )


def _runs(
    server: serving_probe.Server,
    args: Args,
    prompts: speed.Prompts,
    copy: dict[str, Any],
    length: int,
    warnings: list[str],
    node: Node,
) -> dict[str, Any]:
    """at, warnings, accepted_per_draft and the figures of one length of prompts. Raises NotYet, Wrong."""
    import time

    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    before = warm = _metrics(server)
    runs = []
    for index in range(args.runs + 1):
        told = "warm-up" if index == 0 else f"run {index} of {args.runs}"
        node.progress(index, args.runs + 1, "runs", f"{copy['service']}, {length:,} prompt tokens: {told}")
        bodies = [speed.body(copy["model"], prompts.get(length), args.tokens) for _ in range(args.concurrency)]
        streams = speed.together(server, bodies, args.patience, node)
        if index == 0:
            warm = _metrics(server)
        else:
            runs.append(speed.figures(streams))
    after = _metrics(server)
    others = _grown(PROMPTS, before, after) - length * args.concurrency * (args.runs + 1)
    if others > 0:
        warnings.append(f"others were using it: {others:,.0f} more prompt tokens meanwhile")
    if cached := _grown(CACHED, warm, after):
        warnings.append(f"{cached:,.0f} prompt tokens came from its prefix cache")
    drafts = _grown(DRAFTS, warm, after)
    accepted = round(_grown(ACCEPTED, warm, after) / drafts, 3) if drafts else None
    return {"at": at, "warnings": warnings, "accepted_per_draft": accepted, **speed.summary(runs)}


def _metrics(server: serving_probe.Server) -> dict[str, float]:
    """{} where there are none."""
    try:
        status, text = server.ask("/metrics", None, serving_probe.QUICK)
    except NotYet:
        return {}
    return serving_probe.series(text) if status == 200 and isinstance(text, str) else {}


def _grown(name: str, before: dict[str, float], after: dict[str, float]) -> float:
    return after[name] - before[name] if name in before and name in after else 0.0
