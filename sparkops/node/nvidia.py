"""What nvidia-smi says of the first GPU."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from sparkops.node.api import Node

FIELDS = {"driver_version": "driver", "power.draw": "power_w", "temperature.gpu": "temperature_c"}
TIMEOUT = 20.0


def gpu(node: Node) -> dict[str, Any]:
    """driver (text), power_w, temperature_c; each None when it reads [N/A] or nothing answers."""
    argv = ["nvidia-smi", f"--query-gpu={','.join(FIELDS)}", "--format=csv,noheader,nounits"]
    asked = node.run(argv, env={"LC_ALL": "C"}, timeout=TIMEOUT)
    values = asked.out.splitlines()[0].split(",") if asked.rc == 0 and asked.out.strip() else []
    found: dict[str, Any] = dict.fromkeys(FIELDS.values())
    for name, value in zip(FIELDS.values(), values):
        text = value.strip()
        found[name] = (text if text[:1].isdigit() else None) if name == "driver" else _number(text)
    return found


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
