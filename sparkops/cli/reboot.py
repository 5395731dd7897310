"""Reboots a node, and waits until it has come up as another boot."""

from __future__ import annotations

import time
from collections.abc import Callable

from sparkops.cli.collect import collect
from sparkops.cli.options import Changing, Globals
from sparkops.cli.run import Workplace

# Seconds: for a reboot, of which a stop of the copies may be minutes; between two tries to reach the node.
PATIENCE, PAUSE = 900.0, 1.0


def reboot(given: Globals, node: str, how: Changing, clock: Callable[[], float] = time.monotonic) -> tuple[str, int]:
    """(why it is not back, "" when it is; the exit code that stands for that)."""
    place = Workplace(given, "reboot")

    def boot() -> tuple[str, str, int]:
        found, code = collect(place, node, {"go": False}, how)
        return found[node].results.get("command", {}).get("stdout", "").strip(), found[node].trouble, code

    before, trouble, code = boot()
    if not before:
        return trouble or "its boot's id cannot be read", code or 1
    found, code = collect(place, node, {"go": True}, how, lease=True)
    if code:
        return found[node].trouble or "it cannot be rebooted", code
    end = clock() + PATIENCE
    while clock() < end:
        time.sleep(PAUSE)
        now, trouble, code = boot()
        if code == 130:
            return "interrupted", code
        if now not in ("", before):
            return "", 0
    return f"it has not come back within {PATIENCE:.0f} s: {trouble or 'it has not gone down'}", 4
