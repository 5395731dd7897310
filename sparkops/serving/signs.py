"""What evidence shows beside the words of a log: each sign is a pure look at it, with what it saw."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct

from sparkops.serving.evidence import Evidence, Listener

GIB = 1 << 30
FULL_BYTES, FULL_INODES = GIB, 1000
# A node whose memory is used up to this share is about to freeze.
THIN = 0.03
SLOW = 3.0
# vLLM 0.24's lines (FACTS §2).
READY = "Application startup complete"
KV_TOKENS = re.compile(r"GPU KV cache size: ([\d,]+) tokens")
LOADED = re.compile(r"Loading weights took ([\d.]+) seconds")
BACKEND = re.compile(r"MoE backend out of")
KILLED = re.compile(r"Killed process (\d+)")
# templates/guard.j2
WENT_BACK = re.compile(r"^release \d+ was never confirmed: back to \d+")
PID = re.compile(r"pid=(\d+)")


class Sign(Struct, frozen=True):
    """quotes: what was seen, for people. values: what a row's texts may name."""

    quotes: list[str] = []
    values: dict[str, Any] = {}


Look = Callable[[Evidence], "Sign | None"]


def signs(evidence: Evidence) -> dict[str, Sign]:
    """The signs that hold."""
    return {name: sign for name, look in LOOKS.items() if (sign := look(evidence)) is not None}


def not_deployed(seen: Evidence) -> Sign | None:
    gone = seen.release.number is None
    return Sign([f"there is no release of {seen.service}"]) if gone else None


def unit_missing(seen: Evidence) -> Sign | None:
    state = seen.properties.get("LoadState", "unknown")
    if seen.release.number is None or state == "loaded":
        return None
    return Sign([f"LoadState={state}"], {"load_state": state})


def program_missing(seen: Evidence) -> Sign | None:
    words = seen.release.words
    if not words or seen.release.program:
        return None
    return Sign([f"no such file: {words[0]}"], {"program": words[0]})


def not_enabled(seen: Evidence) -> Sign | None:
    state = seen.properties.get("UnitFileState", "")
    if state not in ("disabled", "masked", "linked"):
        return None
    return Sign([f"UnitFileState={state}"], {"unit_file_state": state})


def no_linger(seen: Evidence) -> Sign | None:
    return Sign(["Linger=no"]) if seen.linger is False and seen.release.number is not None else None


def stopped(seen: Evidence) -> Sign | None:
    loaded = seen.properties.get("LoadState") == "loaded"
    return Sign(["ActiveState=inactive"]) if loaded and seen.properties.get("ActiveState") == "inactive" else None


def start_limit(seen: Evidence) -> Sign | None:
    if seen.properties.get("Result") != "start-limit-hit":
        return None
    return Sign(["Result=start-limit-hit"])


def restarting(seen: Evidence) -> Sign | None:
    count = seen.number("NRestarts")
    if seen.serving or not seen.active or count < 2:
        return None
    return Sign([f"NRestarts={count}"])


def ended_clean(seen: Evidence) -> Sign | None:
    """The process ended with 0, and nobody stopped it."""
    waits = seen.properties.get("SubState") == "auto-restart"
    clean = seen.properties.get("ExecMainCode") == "1" and seen.properties.get("ExecMainStatus") == "0"
    return Sign(["SubState=auto-restart, ExecMainStatus=0"]) if waits and clean else None


def oom_killed(seen: Evidence) -> Sign | None:
    pids = {pid for line in (*seen.journal.run, *seen.journal.before) for pid in PID.findall(line)}
    quotes = [line for line in seen.kernel or [] if (killed := KILLED.search(line)) and killed[1] in pids]
    if seen.properties.get("Result") == "oom-kill":
        quotes.append("Result=oom-kill")
    return Sign(quotes) if quotes else None


def port_taken(seen: Evidence) -> Sign | None:
    foreign = [one for one in seen.listeners if not one.ours and clash(one.address, seen.host)]
    if not foreign:
        return None
    one = foreign[0]
    who, stop = holder(one)
    said = f"{one.address}:{seen.port}: pid {one.pid or '?'}, unit {one.unit or 'none'}: {one.command}".rstrip(": ")
    return Sign([said], {"holder": who, "stop_holder": stop})


def holder(one: Listener) -> tuple[str, str]:
    """Who listens, in words, and the command that ends it."""
    if one.pid is None:
        return "a process that this user may not see", "as root: ss -ltnp"
    unit = one.unit if one.unit.endswith(".service") else ""
    who = f"pid {one.pid} ({one.command or 'no command line'}) of " + (f"the unit {unit}" if unit else "no unit")
    return who, f"systemctl stop {unit}" if unit else f"kill {one.pid}"


def clash(one: str, other: str) -> bool:
    """Whether two addresses claim the same port."""
    anywhere = ("0.0.0.0", "::", "")
    return one == other or one in anywhere or other in anywhere or other == "localhost"


def frozen(seen: Evidence) -> Sign | None:
    """Requests are under way, and nothing moved between the looks; a long prompt's prefill fills the KV cache."""
    looks = seen.http.metrics
    if len(looks) < 2:
        return None
    first, last = looks[0], looks[-1]
    under_way = last.get("num_requests_running", 0) + last.get("num_requests_waiting", 0)
    if not under_way or any(first.get(name) != last.get(name) for name in {*first, *last} - {"at"}):
        return None
    seconds = last.get("at", 0) - first.get("at", 0)
    count = f"{last.get('generation_tokens_total', 0):.0f}"
    said = f"generation_tokens_total stood at {count} for {seconds:.1f} s, with {under_way:.0f} requests under way"
    return Sign([said], {"stuck": said})


def no_token(seen: Evidence) -> Sign | None:
    token = seen.http.token
    if seen.http.health != 200 or token is None or token.generated:
        return None
    return Sign([f"/v1/completions: {token.error}"], {"stuck": f"one was asked for ({token.error})"})


def unhealthy(seen: Evidence) -> Sign | None:
    status = seen.http.health
    return Sign([f"/health: {status}"], {"health": status}) if status not in (None, 200) else None


def wrong_model(seen: Evidence) -> Sign | None:
    wanted, models = seen.recipe.get("served_model_name"), seen.http.models
    if not wanted or models is None or wanted in models:
        return None
    named = ", ".join(models) or "none"
    return Sign([f"/v1/models: {named}"], {"models": named})


def wrong_length(seen: Evidence) -> Sign | None:
    wanted = seen.recipe.get("max_model_len")
    found = (seen.http.models or {}).get(str(seen.recipe.get("served_model_name")))
    if not wanted or not found or found == wanted:
        return None
    return Sign([f"/v1/models: max_model_len {found}"], {"found_length": found})


def key_refused(seen: Evidence) -> Sign | None:
    return Sign([seen.http.error]) if seen.http.error.endswith(("401", "403")) else None


def silent(seen: Evidence) -> Sign | None:
    ready = any(READY in line for line in seen.journal.run)
    return Sign([seen.http.error]) if seen.running and ready and seen.http.health is None else None


def overdue(seen: Evidence) -> Sign | None:
    limit = seen.ready_within
    if not limit or not seen.running or seen.http.health == 200 or (seen.uptime or 0) <= limit:
        return None
    if any(READY in line for line in seen.journal.run):
        return None
    last = seen.journal.run[-1] if seen.journal.run else "(nothing)"
    return Sign([last], {"last_line": last})


def went_back(seen: Evidence) -> Sign | None:
    """The guard of a release on trial has gone back to the last confirmed one."""
    said = [line for line in (*seen.journal.before, *seen.journal.run) if WENT_BACK.search(line)]
    return Sign(said[-1:], {"said": said[-1]}) if said else None


def lines_missing(seen: Evidence) -> Sign | None:
    """The start is over and on record, and what the recipe expects of it is not there."""
    lines = seen.journal.run
    if not seen.running or not seen.journal.whole or not any(READY in line for line in lines):
        return None
    backend = seen.expected.get("backend")
    wanted = [*map(str, seen.expected.get("log") or []), *([str(backend)] if backend else [])]
    missing = [piece for piece in wanted if not any(piece in line for line in lines)]
    if not missing:
        return None
    said = [line for line in lines if BACKEND.search(line)] or ["(no line about a MoE backend)"]
    return Sign(said, {"missing": " nor ".join(map(repr, missing))})


def kv_differs(seen: Evidence) -> Sign | None:
    wanted = seen.expected.get("kv_cache_tokens")
    line, found = last_match(KV_TOKENS, seen.journal.run)
    tokens = int(found[1].replace(",", "")) if found else 0
    if not wanted or not found or tokens == wanted or not seen.running:
        return None
    return Sign([line], {"found_tokens": f"{tokens:,}", "wanted_tokens": f"{wanted:,}"})


def slow_load(seen: Evidence) -> Sign | None:
    figures = seen.recipe.get("published") or []
    published = next((one["value"] for one in figures if one.get("metric") == "weight_load"), None)
    line, found = last_match(LOADED, seen.journal.run)
    if not published or not found or float(found[1]) < SLOW * published:
        return None
    return Sign([line], {"load_seconds": found[1], "published_seconds": f"{published:g}"})


def last_match(pattern: re.Pattern[str], lines: list[str]) -> tuple[str, re.Match[str] | None]:
    """The last line that a pattern is found in."""
    return next(((line, found) for line in reversed(lines) if (found := pattern.search(line))), ("", None))


def disk_full(seen: Evidence) -> Sign | None:
    full = []
    for disk in seen.disks:
        if disk.free is not None and disk.free < FULL_BYTES:
            full.append(f"{disk.name} {disk.path}: {disk.free / GIB:.2f} GiB free")
        elif disk.inodes is not None and disk.inodes < FULL_INODES:
            full.append(f"{disk.name} {disk.path}: {disk.inodes} inodes free")
    return Sign(full) if full else None


def thin_memory(seen: Evidence) -> Sign | None:
    memory = seen.memory
    if not memory.total or memory.available >= THIN * memory.total:
        return None
    return Sign([f"MemAvailable {memory.available / GIB:.1f} GiB, MemFree {memory.free / GIB:.1f} GiB"])


def driver_mismatch(seen: Evidence) -> Sign | None:
    error = seen.driver.error if seen.driver else ""
    return Sign([error], {"error": error}) if "version mismatch" in error else None


def driver_absent(seen: Evidence) -> Sign | None:
    if seen.driver is None or seen.driver.version or driver_mismatch(seen):
        return None
    return Sign([seen.driver.error or "nvidia-smi does not answer"])


def driver_too_old(seen: Evidence) -> Sign | None:
    version = seen.driver.version if seen.driver else None
    major = (version or "").partition(".")[0]
    if not major.isdigit() or int(major) >= minimum_driver(seen):
        return None
    return Sign([f"nvidia-smi: driver {version}"], {"found": version})


def minimum_driver(seen: Evidence) -> int:
    """The driver's major version that the recipe needs; 580 carries CUDA 13 (FACTS §1)."""
    return int((seen.recipe.get("requires") or {}).get("driver") or 580)


def checkpoint_problem(*words: str) -> Look:
    """A look at whether the checkpoint has a problem with one of these words."""
    return checkpoint_problems(lambda problem: any(word in problem for word in words))


def checkpoint_problems(wanted: Callable[[str], bool]) -> Look:
    """A look at whether the checkpoint has such a problem."""

    def look(seen: Evidence) -> Sign | None:
        if seen.checkpoint is None:
            return None
        found = [problem for problem in seen.checkpoint.problems if wanted(problem)]
        return Sign(found, {"reason": found[0], "path": seen.checkpoint.path}) if found else None

    return look


def damaged(problem: str) -> bool:
    """Whether a problem is of a file that is there and can be read."""
    return not problem.endswith(("is missing", "Permission denied", "No such file or directory", "*.safetensors file"))


def checkpoint_gone(seen: Evidence) -> Sign | None:
    found = seen.checkpoint
    gone = [f"{found.path}: No such file or directory"] if found else []
    return Sign(gone) if found and found.problems == gone else None


def wrong_revision(seen: Evidence) -> Sign | None:
    wanted = seen.recipe.get("model_revision")
    found = seen.checkpoint.revision if seen.checkpoint else None
    if not wanted or not found or found.startswith(str(wanted)):
        return None
    return Sign([f"{seen.checkpoint.path if seen.checkpoint else ''}: revision {found}"], {"found_revision": found})


def language_model_only(seen: Evidence) -> Sign | None:
    return Sign() if "--language-model-only" in seen.release.words else None


def about(*words: str) -> Look:
    """A look at whether the log of the last runs speaks of missing or unknown tensors of these names."""
    pattern = re.compile(rf"(not initialized from checkpoint: \{{.?|parameter named ')(model\.)?({'|'.join(words)})")

    def look(seen: Evidence) -> Sign | None:
        return Sign() if any(pattern.search(line) for line in (*seen.journal.run, *seen.journal.before)) else None

    return look


def strict(seen: Evidence) -> Sign | None:
    return Sign() if seen.recipe.get("strict") else None


def clock_off(seen: Evidence) -> Sign | None:
    if seen.clock.synchronized is not False:
        return None
    said = "NTPSynchronized=no" + (", NTP=no" if seen.clock.ntp is False else "")
    return Sign([said], {"clock": said})


def reboot_pending(seen: Evidence) -> Sign | None:
    return Sign(["/run/reboot-required"]) if seen.reboot_required else None


def _looks() -> Iterator[tuple[str, Look]]:
    for look in (
        *(not_deployed, unit_missing, program_missing, not_enabled, no_linger, stopped, start_limit, restarting),
        *(ended_clean, oom_killed, port_taken, frozen, no_token, unhealthy, wrong_model, wrong_length, key_refused),
        *(silent, overdue, lines_missing, kv_differs, slow_load, disk_full, thin_memory, driver_mismatch),
        *(driver_absent, driver_too_old, checkpoint_gone, wrong_revision, language_model_only, strict, clock_off),
        *(reboot_pending, went_back),
    ):
        yield look.__name__, look
    yield "checkpoint_damaged", checkpoint_problems(damaged)
    yield "shard_missing", checkpoint_problem(".safetensors is missing", "no *.safetensors")
    yield "config_missing", checkpoint_problem("config.json is missing")
    yield "checkpoint_unreadable", checkpoint_problem("Permission denied")
    yield "about_visual", about("visual")
    yield "about_draft", about(r"mtp\.")


LOOKS: dict[str, Look] = dict(_looks())
