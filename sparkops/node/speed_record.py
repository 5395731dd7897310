"""The speeds of a service that were measured on this node: state/bench/<service>.json, the newest last."""

from __future__ import annotations

import json
import os

from sparkops.node import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

KEPT = 50
# Measurements that agree in these can be compared.
CONDITIONS = ("prompt_tokens", "tokens", "concurrency")


def path(state_dir: str, service: str) -> str:
    """A service's file."""
    return os.path.join(state_dir, "bench", f"{service}.json")


def read(state_dir: str, service: str) -> list[dict[str, Any]]:
    """What is remembered; [] also for a file that is damaged: it is only there to be compared with."""
    try:
        with open(path(state_dir, service), encoding="utf-8") as file:
            known = json.load(file)["measured"]
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return []
    except OSError as error:
        raise files.refusal("read", path(state_dir, service), error) from error
    good = isinstance(known, list) and all(isinstance(one, dict) and isinstance(one.get("at"), str) for one in known)
    return known if good else []


def before(known: list[dict[str, Any]], conditions: dict[str, Any]) -> dict[str, Any] | None:
    """The last one under the same conditions that nobody disturbed."""
    alike = (one for one in reversed(known) if all(one.get(name) == conditions[name] for name in CONDITIONS))
    return next((one for one in alike if not one.get("warnings")), None)


def add(state_dir: str, service: str, one: dict[str, Any]) -> None:
    """Remember one more, and forget the oldest. Raises Failure."""
    from sparkops.node.jobs import make_folder

    file = path(state_dir, service)
    make_folder(os.path.dirname(file))
    owner = os.stat(state_dir)
    # Root measures what has another user's key; the record stays the login user's.
    theirs = (str(owner.st_uid), str(owner.st_gid)) if os.geteuid() == 0 else (None, None)
    known = [*read(state_dir, service), one][-KEPT:]
    files.write(file, json.dumps({"measured": known}).encode(), 0o600, *theirs)
