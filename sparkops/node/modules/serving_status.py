"""How a served copy is: unit, release, health, load; and how its node is. Changes nothing.

Example:
    - name: Look at the copy
      serving_status:
        home: /opt/sparkops
        service: vllm
"""

from __future__ import annotations

import json
import os

from sparkops.node import releases, systemd
from sparkops.node.api import Arguments, Node, Outcome, Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

# Prometheus names of vLLM 0.24.0 (FACTS §2) -> ours.
METRICS = {
    "vllm:num_requests_running": "running",
    "vllm:num_requests_waiting": "waiting",
    "vllm:generation_tokens_total": "tokens",
    "vllm:kv_cache_usage_perc": "kv_use",
}


class Args(Arguments):
    home: Path  # sparkops_home
    service: str  # the service's name
    scope: Literal["system", "user"] = "system"
    interval: float = 1.0  # seconds between two looks at the token counter; 0: no rate


def apply(args: Args, node: Node) -> Outcome:
    """Always ok. None: not known.

    Result: unit_state, since (s since the epoch), release, confirmed, back_from, recipe, url, model, health (HTTP),
    running, waiting, tok_s, kv_use (0 to 1), mem_available, mem_free (bytes), power_w, temperature_c, driver, kernel,
    reboot_pending.
    """
    folder = releases.service_folder(args.home, args.service)
    unit = systemd.unit_name(f"sparkops-{args.service}")
    shown = systemd.Manager(node, args.scope).show(unit)
    number = releases.linked(folder)
    about = _json(os.path.join(folder, "current", releases.META))
    serve = _json(os.path.join(folder, "current", "serve.json"))
    found: dict[str, Any] = {
        "unit_state": shown.get("ActiveState", "unknown") if shown.get("LoadState") == "loaded" else "absent",
        "since": systemd.started_at(shown) or None,
        "release": number,
        "confirmed": number is not None and releases.deadline(folder, number) is None,
        "back_from": _failed_later(folder, number),
        "recipe": about.get("recipe"),
        "url": serve.get("url"),
        "model": serve.get("model"),
        "reboot_pending": os.path.exists("/run/reboot-required") or os.path.exists("/var/run/reboot-required"),
        "kernel": os.uname().release,
    }
    found.update(_load(serve, args.interval, node))
    found.update(_memory())
    found.update(_gpu(node))
    return Outcome.ok(**found)


def _json(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            value = json.load(file)
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def _failed_later(folder: str, number: int | None) -> int | None:
    """The newest release that the node went back from by itself, or was put back from."""
    later = [n for n in releases.numbers(folder) if number is not None and n > number]
    return max((n for n in later if releases.deadline(folder, n) is not None), default=None)


def _load(serve: dict[str, Any], interval: float, node: Node) -> dict[str, Any]:
    found: dict[str, Any] = dict.fromkeys(("health", "running", "waiting", "tok_s", "kv_use"))
    url = serve.get("url")
    if not isinstance(url, str):
        return found
    import time
    from urllib.error import HTTPError, URLError
    from urllib.request import ProxyHandler, build_opener

    ask = build_opener(ProxyHandler({}))

    def get(path: str) -> tuple[int | None, str]:
        try:
            with ask.open(url + path, timeout=5) as answer:
                return answer.status, answer.read().decode("utf-8", "replace")
        except HTTPError as error:
            return error.code, ""
        except (URLError, OSError):
            return None, ""

    found["health"] = get("/health")[0]
    if found["health"] is None:
        return found
    before, at = _metrics(get("/metrics")[1]), time.monotonic()
    found.update({name: before.get(name) for name in ("running", "waiting", "kv_use")})
    if interval > 0 and "tokens" in before:
        node.pause(interval)
        after = _metrics(get("/metrics")[1])
        if "tokens" in after:
            found["tok_s"] = round((after["tokens"] - before["tokens"]) / (time.monotonic() - at), 1)
    return found


def _metrics(text: str) -> dict[str, float]:
    """The figures we know, summed over their labels."""
    found: dict[str, float] = {}
    for line in text.splitlines():
        name = METRICS.get(line.partition("{")[0].partition(" ")[0])
        if name is not None:
            try:
                found[name] = found.get(name, 0.0) + float(line.rpartition(" ")[2])
            except ValueError:
                continue
    return found


def _memory() -> dict[str, int | None]:
    found: dict[str, int | None] = {"mem_available": None, "mem_free": None}
    names = {"MemAvailable:": "mem_available", "MemFree:": "mem_free"}
    with open("/proc/meminfo", encoding="ascii") as file:
        for line in file:
            words = line.split()
            if words[0] in names:
                found[names[words[0]]] = int(words[1]) * 1024
    return found


def _gpu(node: Node) -> dict[str, Any]:
    """Of the first GPU; a field that reads [N/A] is None."""
    fields = {"driver_version": "driver", "power.draw": "power_w", "temperature.gpu": "temperature_c"}
    asked = node.run(["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"], timeout=20)
    values = asked.out.splitlines()[0].split(",") if asked.rc == 0 and asked.out.strip() else []
    found: dict[str, Any] = dict.fromkeys(fields.values())
    for name, value in zip(fields.values(), values):
        text = value.strip()
        found[name] = text if name == "driver" else _number(text)
    return found


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
