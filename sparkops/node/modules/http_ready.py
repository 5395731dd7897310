"""Wait until a served copy answers: health, its model's name and context, then one token that it really generates.

Example:
    - name: It serves
      http_ready:
        url: http://127.0.0.1:8000
        model: Qwen/Qwen3.6-35B-A3B-FP8
        max_model_len: 262144
        golden: {prompt: The capital of France is, answer: Paris}
        timeout: 900
        unit: sparkops-vllm
"""

from __future__ import annotations

import os

from sparkops.node import serving_probe, systemd
from sparkops.node.api import Arguments, Failure, Node, Outcome, Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

FIRST_PAUSE = 0.15
TIMEOUT = 600.0
# A unit that has been restarted this often while we waited will not come up.
RESTARTS = 2


class Args(Arguments):
    """model: the name that it must serve. url: where it answers, without /v1. max_model_len: the context that it must
    have, in tokens. golden: {prompt, answer}, a question and a piece of its greedy answer, which must come within 64
    tokens. release: in place of these, a release's folder, whose serve.json says them and whose env has the key.
    timeout, interval: seconds; without a timeout the release's ready_within, else 600. env_file: where the server's
    VLLM_API_KEY is; it is never shown.

    unit: the systemd unit that runs it; when that has failed or restarts in a loop there is nothing to wait for.
    """

    model: str | None = None
    url: str = "http://127.0.0.1:8000"
    max_model_len: int | None = None
    golden: dict[str, str] | None = None
    release: Path | None = None
    timeout: float | None = None
    interval: float = 2.0
    env_file: Path | None = None
    unit: str | None = None
    scope: Literal["system", "user"] = "system"


def apply(args: Args, node: Node) -> Outcome:
    """ok with seconds, model, max_model_len; check mode never waits: unknown when it is not ready now."""
    if args.release is not None:
        args = of_release(args, args.release, node)
    if args.model is None:
        raise Failure("http_ready needs model, or a release that names it")
    if args.golden is not None and not (set(args.golden) == {"prompt", "answer"} and all(args.golden.values())):
        raise Failure("golden must be {prompt: TEXT, answer: TEXT}, neither of them empty")
    try:
        server = serving_probe.Server(args.url, key(args), node)
        if node.check:
            return once(server, args)
        return wait(server, args, node)
    except serving_probe.Wrong as wrong:
        if node.check:
            return Outcome.unknown(str(wrong))
        raise Failure(str(wrong), url=args.url) from None


def of_release(args: Args, folder: str, node: Node) -> Args:
    """The arguments as a release has them. Raises Failure."""
    import json

    from sparkops.node import drift

    try:
        with open(os.path.join(folder, "serve.json"), encoding="utf-8") as file:
            said = json.load(file)
        told = {name: said[name] for name in ("url", "model")}
        # A release that an older sparkops wrote has none of these.
        told.update({name: said.get(name) for name in ("max_model_len", "golden")})
        if args.timeout is None:
            within = (drift.document(folder + "/recipe.json").get("expect") or {}).get("ready_within")
            told["timeout"] = float(within) if within else None
        return Args(**{**vars(args), **told, "env_file": folder + "/env"})
    except FileNotFoundError:
        if node.check:
            return Args(**{**vars(args), "model": ""})
        raise Failure(f"{folder} is no release: it has no serve.json") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Failure(f"{folder}/serve.json cannot be read: {error}") from None


def key(args: Args) -> str | None:
    """The server's API key, if it has one."""
    if args.env_file is None:
        return None
    from sparkops.node.facts import read

    return serving_probe.api_key(read(args.env_file))


def once(server: serving_probe.Server, args: Args) -> Outcome:
    """Is it ready now."""
    try:
        return Outcome.ok(seconds=0.0, **probe(server, args, serving_probe.QUICK))
    except serving_probe.NotYet as reason:
        return Outcome.unknown(f"not ready now: {reason}")


def probe(server: serving_probe.Server, args: Args, left: float) -> dict[str, Any]:
    """Ask once. Raises NotYet, Wrong."""
    return serving_probe.ready(server, str(args.model), left, args.max_model_len, args.golden)


def wait(server: serving_probe.Server, args: Args, node: Node) -> Outcome:
    """Ask until it is ready, the time is over, or its unit has given up."""
    import time

    timeout = TIMEOUT if args.timeout is None else args.timeout
    started = time.monotonic()
    watch = Watch(args, node) if args.unit else None
    pause = FIRST_PAUSE
    while True:
        left = timeout - (time.monotonic() - started)
        try:
            said = probe(server, args, max(left, 1.0))
            return Outcome.ok(seconds=round(time.monotonic() - started, 1), **said)
        except serving_probe.NotYet as error:
            reason = str(error)
        passed = time.monotonic() - started
        if watch:
            watch.check(reason)
        if passed >= timeout:
            journal = watch.journal() if watch else []
            lines = [f"not ready after {timeout:g} s: {reason}", *systemd.shown(journal)]
            raise Failure("\n".join(lines), url=args.url, seconds=round(passed, 1), journal=journal)
        node.progress(round(passed, 1), timeout, "s", reason)
        # Often at first, for a copy that restarts in a second; a real one takes minutes.
        pause = min(pause * 1.5, args.interval)
        node.pause(min(pause, max(timeout - passed, 0.0)))


class Watch:
    """The unit behind the server, from now on."""

    def __init__(self, args: Args, node: Node) -> None:
        self.name = systemd.unit_name(args.unit or "")
        self.manager = systemd.Manager(node, args.scope)
        self.restarts = systemd.number(self.manager.show(self.name), "NRestarts")

    def check(self, reason: str) -> None:
        """Raises Failure with the journal's end when the unit will not come up."""
        unit = self.manager.show(self.name)
        restarts = systemd.number(unit, "NRestarts") - self.restarts
        state = unit.get("ActiveState", "unknown")
        if unit.get("LoadState") == "not-found":
            message = f"there is no unit {self.name}, and the server does not answer ({reason})"
        elif restarts >= RESTARTS:
            message = f"{self.name} restarts in a loop ({restarts} times while it was waited for)"
        elif state in ("failed", "inactive"):
            message = f"{self.name} is {state} (result {unit.get('Result')})"
        else:
            return
        journal = self.journal()
        raise Failure("\n".join([message, *systemd.shown(journal)]), **self.said(unit, journal))

    def said(self, unit: dict[str, str], journal: list[str]) -> dict[str, Any]:
        """The result's keys."""
        return {"unit": self.name, "active": unit.get("ActiveState", "unknown"), "journal": journal}

    def journal(self) -> list[str]:
        """The unit's last lines."""
        return self.manager.journal(self.name)
