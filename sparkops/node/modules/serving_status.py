"""How served copies are: unit, release, health, load, drift; and how their node is. Changes nothing.

Example:
    - name: Look at the copies
      serving_status:
        home: /opt/sparkops
"""

from __future__ import annotations

import os

from sparkops.node import condition, drift, nvidia, releases, serving_probe, systemd
from sparkops.node.api import Arguments, Node, Outcome, Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

# Prometheus names of vLLM 0.24.0, without prefix (FACTS §2), of what is told as it stands; and what counts tokens.
METRICS = {"running": "num_requests_running", "waiting": "num_requests_waiting", "kv_use": "kv_cache_usage_perc"}
TOKENS = "generation_tokens_total"


class Args(Arguments):
    home: Path  # sparkops_home
    service: str | None = None  # one service; left out, all that have a release here
    scope: Literal["system", "user"] = "system"
    interval: float = 1.0  # seconds between two looks at the token counters; 0: no rate


def apply(args: Args, node: Node) -> Outcome:
    """Always ok. None: not known.

    Result: services, mem_available, mem_free (bytes), power_w, temperature_c, driver, kernel, reboot_pending. Each
    service: service, unit_state, since (s since the epoch), release, confirmed, back_from, recipe, url, model, health
    (HTTP), running, waiting, tok_s, kv_use (0 to 1), drift, patches, engine, adopted, kernel_then, driver_then (at the
    deploy).
    """
    manager = systemd.Manager(node, args.scope)
    names = releases.services(args.home) if args.service is None else [args.service]
    services = [_copy(args.home, name, manager) for name in names]
    _load(services, args.interval, node)
    reboot = any(os.path.exists(path) for path in ("/run/reboot-required", "/var/run/reboot-required"))
    memory = condition.memory()
    said = {"mem_available": memory["available"], "mem_free": memory["free"]}
    beneath = {**said, **nvidia.gpu(node), "kernel": os.uname().release, "reboot_pending": reboot}
    return Outcome.ok(services=services, **beneath)


def _copy(home: str, service: str, manager: systemd.Manager) -> dict[str, Any]:
    folder = releases.service_folder(home, service)
    shown = manager.show(releases.unit_of(service))
    number = releases.linked(folder)
    about = drift.document(os.path.join(folder, "current", releases.META))
    serve = drift.document(os.path.join(folder, "current", "serve.json"))
    found = drift.look(home, service, shown)
    then = found.pop("deployed")
    return {
        "service": service,
        "unit_state": shown.get("ActiveState", "unknown") if shown.get("LoadState") == "loaded" else "absent",
        "since": systemd.started_at(shown) or None,
        "release": number,
        "confirmed": releases.confirmed(folder, number),
        "back_from": _failed_later(folder, number),
        "recipe": about.get("recipe"),
        "url": serve.get("url"),
        "model": serve.get("model"),
        **found,
        "kernel_then": then["kernel"],
        "driver_then": then["driver"],
    }


def _failed_later(folder: str, number: int | None) -> int | None:
    """The newest release that the node went back from by itself, or was put back from."""
    later = [n for n in releases.numbers(folder) if number is not None and n > number]
    return max((n for n in later if releases.deadline(folder, n) is not None), default=None)


def _load(services: list[dict[str, Any]], interval: float, node: Node) -> None:
    """Add each copy's health and load; one pause for all of them."""
    import time

    before = {}
    for copy in services:
        copy.update(dict.fromkeys(("health", "running", "waiting", "tok_s", "kv_use")))
        if not isinstance(copy["url"], str):
            continue
        copy["health"] = _get(copy["url"], "/health")[0]
        if copy["health"] is None:
            continue
        said = serving_probe.series(_get(copy["url"], "/metrics")[1])
        copy.update({name: said.get(theirs) for name, theirs in METRICS.items()})
        if TOKENS in said:
            before[copy["service"]] = (said[TOKENS], time.monotonic())
    if not before or interval <= 0:
        return
    node.pause(interval)
    for copy in services:
        if copy["service"] in before:
            tokens, at = before[copy["service"]]
            after = serving_probe.series(_get(copy["url"], "/metrics")[1])
            if TOKENS in after:
                copy["tok_s"] = round((after[TOKENS] - tokens) / (time.monotonic() - at), 1)


def _get(url: str, path: str) -> tuple[int | None, str]:
    """Status (None: no answer) and text."""
    from urllib.error import HTTPError, URLError
    from urllib.request import ProxyHandler, build_opener

    try:
        with build_opener(ProxyHandler({})).open(url + path, timeout=5) as answer:
            return answer.status, answer.read().decode("utf-8", "replace")
    except HTTPError as error:
        return error.code, ""
    except (URLError, OSError):
        return None, ""
