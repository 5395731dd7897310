"""Look for what a served copy must have logged since it started.

Example:
    - name: It runs on the right kernels
      log_expect:
        unit: sparkops-vllm
        expect: [Using TRITON Fp8 MoE backend]
        kv_cache_tokens: 308955
"""

from __future__ import annotations

from sparkops.node import systemd
from sparkops.node.api import Arguments, Failure, Node, Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

# vLLM 0.24.0's line (FACTS §2).
KV_LINE = "GPU KV cache size: "
LINES = 20000
# Within so many seconds of a start its first lines come: systemd's own.
START = 60.0


class Args(Arguments):
    """A line that is missing is a failure. Another size of the KV cache is a warning, and with `strict` a failure."""

    unit: str  # the unit whose journal it is
    scope: Literal["system", "user"] = "system"
    expect: list[str] = []  # a piece of a line each
    kv_cache_tokens: int | None = None  # what `GPU KV cache size` must say
    strict: bool = False  # another size of the KV cache is a failure


def apply(args: Args, node: Node) -> Outcome:
    """Always ok, also when the journal no longer has the start, or a Failure.

    Result: missing, kv_cache_tokens (None: not logged), warnings.
    """
    unit = systemd.unit_name(args.unit)
    manager = systemd.Manager(node, args.scope)
    shown = manager.show(unit)
    if not systemd.running(shown):
        if node.check:
            return Outcome.unknown(f"{unit} is not running")
        raise Failure(f"{unit} is not running: {shown.get('ActiveState', 'unknown')}")
    started = systemd.started_at(shown)
    lines = since(manager, unit, started)
    # A copy that has served for long: the journal's end no longer holds its start, and maybe all of it does not.
    whole = next((stamp for line in lines if (stamp := stamped(line)) is not None), 0.0) < started + START
    if not whole:
        lines = start_lines(manager, unit, args.expect, started) + lines
    missing = [wanted for wanted in args.expect if not any(wanted in line for line in lines)]
    tokens = kv_tokens(lines)
    if missing and not whole:
        told = f"the journal no longer has all of its start, and not {'; '.join(map(repr, missing))}"
        return Outcome.ok(told, missing=missing, kv_cache_tokens=tokens, warnings=[told])
    if missing and not node.check:
        wanted = "; ".join(map(repr, missing))
        raise Failure(f"{unit} did not log {wanted} since it started ({len(lines)} lines)", missing=missing)
    other = args.kv_cache_tokens is not None and tokens is not None and tokens != args.kv_cache_tokens
    said = f"the KV cache has {tokens:,} tokens, not the {args.kv_cache_tokens:,} that fit its pool" if other else ""
    if other and args.strict and not node.check:
        raise Failure(f"{said} (strict: true)", kv_cache_tokens=tokens)
    warnings = [said] if said else []
    if missing:
        told = f"not logged yet: {'; '.join(missing)}"
        return Outcome.unknown(told, missing=missing, kv_cache_tokens=tokens, warnings=warnings)
    return Outcome.ok(said, missing=missing, kv_cache_tokens=tokens, warnings=warnings)


def since(manager: systemd.Manager, unit: str, started: float) -> list[str]:
    """The unit's journal since its process started; whole lines of journalctl's short-iso form."""
    manager.node.pause(systemd.JOURNAL_DELAY)
    argv = ["journalctl", *manager.words, "--no-pager", "-q", "-o", "short-iso", "-n", str(LINES), "-u", unit]
    lines = manager.node.run(argv, env=manager.environment(), timeout=30).out.splitlines()
    # Stamps have whole seconds.
    return [line for line in lines if (stamp := stamped(line)) is None or stamp >= int(started)]


def start_lines(manager: systemd.Manager, unit: str, expect: list[str], started: float) -> list[str]:
    """The lines in which something expected stands, wherever in the journal they are, since the process started."""
    pattern = "|".join(quoted(piece) for piece in [*expect, KV_LINE])
    argv = ["journalctl", *manager.words, "--no-pager", "-q", "-o", "short-iso", f"--since=@{int(started)}"]
    argv += ["--case-sensitive=yes", f"--grep={pattern}", "-u", unit]
    return manager.node.run(argv, env=manager.environment(), timeout=60).out.splitlines()[:LINES]


def quoted(piece: str) -> str:
    """A text as a pattern (PCRE) that matches just it."""
    return "".join(one if one.isalnum() or one == " " else "\\" + one for one in piece)


def stamped(line: str) -> float | None:
    """The time of a line of journalctl -o short-iso; None for one that has none."""
    from datetime import datetime

    word = line.partition(" ")[0]
    try:
        return datetime.strptime(word, "%Y-%m-%dT%H:%M:%S%z").timestamp()
    except ValueError:
        return None


def kv_tokens(lines: list[str]) -> int | None:
    """What the last line about the KV cache's size says."""
    for line in reversed(lines):
        _, found, rest = line.partition(KV_LINE)
        digits = rest.partition(" ")[0].replace(",", "")
        if found and digits.isdigit():
            return int(digits)
    return None
