"""Collect what tells why a served copy does or does not serve. Nothing is changed: always ok.

`sparkops doctor` judges the result.

Example:
    - name: Collect the evidence
      serving_evidence:
        service: vllm
        home: /opt/sparkops
        models_dir: ~/models/hf
      become: true
      register: evidence
"""

from __future__ import annotations

import json
import os

from sparkops.node import condition, journal, releases, served, systemd
from sparkops.node.api import Arguments, Node, Outcome, Path
from sparkops.node.facts import read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

    from sparkops.node.serving_probe import Server

PROPERTIES = (
    *("LoadState", "ActiveState", "SubState", "UnitFileState", "FragmentPath", "Result", "NRestarts", "MainPID"),
    *("ExecMainCode", "ExecMainStatus", "ExecMainStartTimestampMonotonic", "InvocationID", "User"),
)
# In the kernel's log, words of memory and of the GPU; and how many lines of them are told.
KERNEL_WORDS = ("NVRM", "NV_ERR", "nvidia", "Out of memory", "oom-kill", "oom_reaper", "I/O error", "EXT4-fs error")
KERNEL_LINES = 60
# Seconds: for a question; for one token; how long counters must stand still before an engine counts as wedged (a step
# of a long prompt's prefill takes some 2 s and moves nothing meanwhile).
QUICK, TOKEN, PATIENCE = 5.0, 20.0, 6.0
ANYWHERE = ("0.0.0.0", "::", "")


class Args(Arguments):
    service: str  # the service's name
    home: Path  # sparkops_home
    models_dir: Path  # where checkpoints are
    scope: Literal["system", "user"] = "system"
    unit: str | None = None  # the unit's name; sparkops-SERVICE when left out
    host: str = "127.0.0.1"  # where the copy listens, if its release does not say
    port: int = 8000  # likewise
    interval: float = 1.5  # seconds between two looks at the counters
    ask: bool = True  # ask an idle server for one token


def apply(args: Args, node: Node) -> Outcome:
    """Always ok. The fields are those of sparkops.serving.evidence.Evidence.

    Result: service, unit, scope, host, port, properties, uptime, linger, release, journal, kernel, listeners, memory,
    disks, driver, clock, reboot_required, checkpoint, http.
    """
    current = os.path.join(releases.service_folder(args.home, args.service), "current")
    release = condition.released(current)
    words = release["words"]
    path = served.checkpoint_path(words)
    host, told = condition.option(words, "--host", args.host), condition.option(words, "--port", "")
    # Somebody may have edited it.
    port = int(told) if told.isdigit() else args.port
    manager = systemd.Manager(node, args.scope)
    unit = systemd.unit_name(args.unit or releases.unit_of(args.service))
    shown = systemd.properties(manager.call("show", "-p", ",".join(PROPERTIES), "--", unit).out)
    env = read(os.path.join(current, "env"))
    url = f"http://{address('127.0.0.1' if host in ANYWHERE else host)}:{port}"
    found: dict[str, Any] = {
        "service": args.service,
        "unit": unit,
        "scope": args.scope,
        "host": host,
        "port": port,
        "properties": shown,
        "uptime": uptime(shown),
        "linger": condition.lingering(args.scope),
        "release": release,
        "journal": logged(manager, unit, shown.get("InvocationID", "")),
        "kernel": kernel(node),
        "listeners": condition.holders(port, unit, systemd.number(shown, "MainPID")),
        "memory": condition.memory(),
        "disks": [condition.disk("models_dir", args.models_dir), condition.disk("sparkops_home", args.home)],
        "driver": condition.driver(node),
        "clock": condition.clock(node),
        "reboot_required": os.path.exists("/run/reboot-required"),
        "checkpoint": checkpoint(path, node.state_dir) if path else None,
        "http": asked(url, env, args, node),
    }
    found = hide(found, secret(env))
    return Outcome.ok(f"{unit} is {shown.get('ActiveState', 'unknown')}", **found)


def address(host: str) -> str:
    """A host as URLs write it."""
    return f"[{host}]" if ":" in host else host


def uptime(shown: dict[str, str]) -> float | None:
    """Seconds since the unit's process started; None when none runs."""
    import time

    stamp = systemd.number(shown, "ExecMainStartTimestampMonotonic")
    if not stamp or not systemd.number(shown, "MainPID"):
        return None
    return round(time.clock_gettime(time.CLOCK_MONOTONIC) - stamp / 1e6, 1)


def logged(manager: systemd.Manager, unit: str, invocation: str) -> dict[str, Any]:
    """The last run's lines and those of the run before."""
    found = journal.runs(manager, unit, invocation)
    last = found[-1] if found else journal.Run(whole=False)
    before = found[-2].lines if len(found) > 1 else []
    # Both ends of a run tell: how it started, and how it ended.
    lines = (
        last.lines if len(last.lines) <= 2 * journal.KEPT else last.lines[: journal.KEPT] + last.lines[-journal.KEPT :]
    )
    return {"run": lines, "before": before[-journal.KEPT :], "whole": last.whole}


def kernel(node: Node) -> list[str] | None:
    """Lines of this boot's kernel log that may matter; None when this user may not read it."""
    env = {"LC_ALL": "C"}
    done = node.run(
        ["journalctl", "-k", "-b", "-q", "--no-pager", "-o", "short-iso", "-n", "5000"], env=env, timeout=30
    )
    text = done.out if done.rc == 0 else ""
    if not text:
        done = node.run(["dmesg"], env=env, timeout=10)
        text = done.out
    if not text:
        return None
    return [line for line in text.splitlines() if any(word in line for word in KERNEL_WORDS)][-KERNEL_LINES:]


def checkpoint(path: str, state_dir: str) -> dict[str, Any]:
    """What is wrong with a checkpoint, how many tensors it has, and the revision it was fetched at (None: unknown)."""
    from sparkops.node import safetensors
    from sparkops.node.checkpoint import INDEX

    problems, names = [], []
    try:
        there = sorted(os.listdir(path))
    except OSError as error:
        return {"path": path, "problems": [f"{path}: {error.strerror}"], "tensors": 0, "visual": 0, "revision": None}
    wanted = {"config.json", *listed(os.path.join(path, INDEX))}
    problems += [f"{name} is missing" for name in sorted(wanted.difference(there))]
    weights = [name for name in there if name.endswith(".safetensors")]
    problems += [] if weights else ["there is no *.safetensors file"]
    for name in weights:
        full = os.path.join(path, name)
        try:
            header, length = safetensors.read_header(full)
            safetensors.check_size(header, length, os.path.getsize(full))
            names += [tensor for tensor in header if tensor != safetensors.METADATA]
        except safetensors.BadFile as bad:
            problems.append(f"{name}: {bad}")
        except OSError as error:
            problems.append(f"{name}: {error.strerror}")
    visual = sum("visual." in name for name in names)
    return {
        "path": path,
        "problems": problems,
        "tensors": len(names),
        "visual": visual,
        "revision": served.revision(path, state_dir),
    }


def listed(index: str) -> list[str]:
    """The files that an index names."""
    try:
        return sorted(set(map(str, json.loads(read(index) or '{"weight_map": {}}')["weight_map"].values())))
    except (ValueError, KeyError, TypeError, AttributeError):
        return []


def asked(url: str, env: str, args: Args, node: Node) -> dict[str, Any]:
    """What the server says: health, models, metrics, token."""
    from sparkops.node import serving_probe

    server = serving_probe.Server(url, secret(env), node)
    silent: dict[str, Any] = {"health": None, "error": "", "models": None, "metrics": [], "token": None}
    try:
        status, _ = server.ask("/health", None, QUICK)
    except serving_probe.NotYet as problem:
        return {**silent, "error": str(problem)}
    found = {**silent, "health": status}
    try:
        status, content = server.ask("/v1/models", None, QUICK)
        known = content.get("data") if status == 200 and isinstance(content, dict) else None
        found["models"] = {one["id"]: one.get("max_model_len") for one in known} if known is not None else None
        found["error"] = "" if status == 200 else f"/v1/models: status {status}"
        found["metrics"] = counters(server, args.interval, node)
        if args.ask and found["health"] == 200 and found["models"] and idle(found["metrics"]):
            found["token"] = token(server, next(iter(found["models"])))
    except serving_probe.NotYet as problem:
        found["error"] = str(problem)
    return found


def counters(server: Server, interval: float, node: Node) -> list[dict[str, float]]:
    """Looks at /metrics: two, and more while the engine seems to stand still."""
    import time

    from sparkops.node import serving_probe

    began = time.monotonic()
    found: list[dict[str, float]] = []
    while len(found) < 2 or (still(found) and time.monotonic() - began < PATIENCE):
        if found:
            node.pause(interval)
        status, text = server.ask("/metrics", None, QUICK)
        if status != 200 or not isinstance(text, str):
            return []
        found.append({"at": round(time.monotonic() - began, 2), **serving_probe.series(text)})
    return found


def still(found: list[dict[str, float]]) -> bool:
    """Whether requests are under way and no counter has moved."""
    first, last = ({name: value for name, value in one.items() if name != "at"} for one in (found[0], found[-1]))
    return first == last and not idle(found)


def idle(found: list[dict[str, float]]) -> bool:
    """Whether no request is under way or waits."""
    return not found or not (found[-1].get("num_requests_running") or found[-1].get("num_requests_waiting"))


def token(server: Server, model: str) -> dict[str, Any]:
    """Whether one token is generated in TOKEN seconds, and what was said instead."""
    from sparkops.node import serving_probe

    body = {"model": model, "prompt": "Hello", "max_tokens": 1, "temperature": 0}
    try:
        status, said = server.ask("/v1/completions", body, TOKEN)
    except serving_probe.NotYet as problem:
        return {"generated": False, "error": str(problem)}
    good = status == 200 and serving_probe.generated(said)
    return {"generated": good, "error": "" if good else f"status {status}: {str(said)[:200]}"}


def secret(env: str) -> str | None:
    """The server's API key."""
    from sparkops.node.serving_probe import api_key

    return api_key(env)


def hide(value: Any, key: str | None) -> Any:
    """A value without the API key, wherever it stands."""
    if not key:
        return value
    if isinstance(value, dict):
        return {name: hide(item, key) for name, item in value.items()}
    if isinstance(value, list):
        return [hide(item, key) for item in value]
    return value.replace(key, "(hidden)") if isinstance(value, str) else value
