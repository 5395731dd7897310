"""The end of a run in words: one line a host, and one that says what it came to."""

from __future__ import annotations

from sparkops.events import STATES, Recap
from sparkops.reporters.words import count

# Always shown, as Ansible does; the others where they are not 0.
ALWAYS = ("ok", "changed", "failed", "unreachable", "skipped")
# What the counts do not tell.
REASONS = {130: "interrupted", 5: "another run holds a node's lease", 2: "the input is wrong"}


def columns(recap: Recap) -> list[str]:
    """The states that a recap shows."""
    return [state for state in STATES if state in ALWAYS or any(row.get(state) for row in recap.hosts.values())]


def lines(recap: Recap) -> list[str]:
    """`spark-1 : ok=12 changed=0 failed=0 ...`, aligned."""
    width = max(map(len, recap.hosts), default=0)
    shown = columns(recap)
    sizes = {state: max(len(str(row.get(state, 0))) for row in recap.hosts.values()) for state in shown if recap.hosts}
    return [
        f"{host:<{width}} : " + "  ".join(f"{state}={row.get(state, 0):<{sizes[state]}}" for state in shown).rstrip()
        for host, row in recap.hosts.items()
    ]


def closing(recap: Recap, *, check: bool = False) -> str:
    """What the run came to: `nothing changed on 2 nodes`, `3 tasks changed spark-1; 1 of 2 nodes failed: spark-2`."""
    if not recap.hosts:
        return "no node was selected"
    parts = [REASONS[recap.exit_code]] if recap.exit_code in REASONS else []
    parts.append(_changes(recap, check))
    for state, verb in (("failed", "failed"), ("unreachable", "could not be reached")):
        bad = [host for host, row in recap.hosts.items() if row.get(state)]
        if bad:
            parts.append(f"{len(bad)} of {count(len(recap.hosts), 'node')} {verb}: {', '.join(bad)}")
    return "; ".join(parts)


def _changes(recap: Recap, check: bool) -> str:
    counted = ("changed", "unknown") if check else ("changed",)
    tasks = {host: sum(row.get(state, 0) for state in counted) for host, row in recap.hosts.items()}
    moved = [host for host, number in tasks.items() if number]
    if not moved:
        return f"nothing {'would change' if check else 'changed'} on {count(len(recap.hosts), 'node')}"
    where = moved[0] if len(moved) == 1 else count(len(moved), "node")
    total = count(sum(tasks.values()), "task")
    return f"{total} would or may change {where}" if check else f"{total} changed {where}"
