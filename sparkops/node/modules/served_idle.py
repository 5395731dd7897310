"""Wait, for some seconds at most, for a moment in which a served copy has no request: before it is stopped.

Example:
    - name: Wait for a moment without requests
      served_idle:
        release: /opt/sparkops/releases/vllm/current
        timeout: 30
        unit: sparkops-vllm
"""

from __future__ import annotations

import json
import os

from sparkops.node import serving_probe, systemd
from sparkops.node.api import Arguments, Failure, Node, Outcome, Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

# Prometheus names of vLLM 0.24.0, without prefix (FACTS §2).
COUNTED = ("num_requests_running", "num_requests_waiting")


class Args(Arguments):
    """release: the folder of the release that runs; its serve.json says where it answers. timeout, interval: seconds.

    unit: the systemd unit that runs it; one that is not up has nothing to wait for.
    """

    release: Path
    timeout: float = 30.0
    interval: float = 0.5
    unit: str | None = None
    scope: Literal["system", "user"] = "system"


def apply(args: Args, node: Node) -> Outcome:
    """Always ok, also with requests left when the time is over, and for a copy that does not say.

    Check mode looks once.

    Result: seconds, requests (running and waiting; None: it does not say).
    """
    import time

    if args.timeout < 0 or args.interval <= 0:
        raise Failure(f"served_idle: timeout {args.timeout:g} and interval {args.interval:g} are seconds, not negative")
    server = _server(args, node)
    if server is None:
        return Outcome.ok("nothing runs", seconds=0.0, requests=None)
    started = time.monotonic()
    while True:
        requests = _requests(server)
        passed = time.monotonic() - started
        if not requests or passed >= args.timeout or node.check:
            said = "it does not say what it runs" if requests is None else f"{requests} requests left"
            return Outcome.ok(f"{said} after {passed:.0f} s", seconds=round(passed, 1), requests=requests)
        node.progress(round(passed, 1), args.timeout, "s", f"{requests} requests left")
        node.pause(min(args.interval, args.timeout - passed))


def _server(args: Args, node: Node) -> serving_probe.Server | None:
    """The running copy; None: there is none, or no way to ask it."""
    if args.unit is not None:
        shown = systemd.Manager(node, args.scope).show(systemd.unit_name(args.unit))
        if not systemd.running(shown):
            return None
    try:
        with open(os.path.join(args.release, "serve.json"), encoding="utf-8") as file:
            return serving_probe.Server(str(json.load(file)["url"]), None, node)
    except (OSError, ValueError, KeyError, TypeError, serving_probe.Wrong):
        return None


def _requests(server: serving_probe.Server) -> int | None:
    """How many requests it has."""
    try:
        status, text = server.ask("/metrics", None, serving_probe.QUICK)
    except serving_probe.NotYet:
        return None
    found = serving_probe.series(text) if status == 200 and isinstance(text, str) else {}
    counts = [found[name] for name in COUNTED if name in found]
    return int(sum(counts)) if counts else None
