"""Judge what `serving_preflight` has found: fail, naming each check that has failed and its remedy.

Example:
    - name: Judge it
      preflight_verdict:
        evidence: "{{ seen }}"
        recipe: "{{ recipe }}"
        service: vllm
        host: 127.0.0.1
        port: 8000
        architectures: [aarch64]
        ignore: [memory]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sparkops.node.api import Arguments
from sparkops.playbook.action import Acted

if TYPE_CHECKING:
    from sparkops.playbook.scope import Scope


class Args(Arguments):
    evidence: dict[str, Any]  # the module's result
    recipe: dict[str, Any]  # what is to be served
    service: str  # its name
    host: str  # where it will listen
    port: int  # likewise
    architectures: list[str]  # those that the recipe's engine has locks for
    engine_gb: float | None = None  # what the engine takes on a disk, 10^9 bytes
    ignore: list[str] = []  # checks that only warn


def act(args: Args, scope: Scope) -> Acted:  # noqa: ARG001
    """Result: rows, a list of {check, verdict (pass, warn, fail), found, remedy}."""
    from msgspec import convert, to_builtins

    from sparkops.recipes.schema import Recipe
    from sparkops.serving.preflight import Plan, judge, message
    from sparkops.serving.preflight_evidence import Evidence

    recipe = convert(args.recipe, Recipe)
    plan = Plan(recipe, args.service, args.host, args.port, args.architectures, args.engine_gb)
    rows = judge(Evidence.of(args.evidence), plan, args.ignore)
    wrong = message(rows)
    return Acted("failed" if wrong else "ok", wrong, {"rows": to_builtins(rows), "msg": wrong})
