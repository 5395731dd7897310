"""A copy's state in one word and one line, with what is wrong with it."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from sparkops.serving.evidence import Evidence
from sparkops.serving.failures import Failures
from sparkops.serving.triage import Finding, triage
from sparkops.serving.values import span

State = Literal["serving", "starting", "failing"]


class Diagnosis(Struct, frozen=True):
    """state: failing when a finding is a failure. summary: what the copy is and does, for people."""

    state: State
    summary: str
    findings: list[Finding]

    @property
    def failing(self) -> bool:
        """Whether there is a failure."""
        return self.state == "failing"


def diagnose(evidence: Evidence, failures: Failures) -> Diagnosis:
    """Pure."""
    found = triage(evidence, failures)
    if any(one.severity == "failure" for one in found):
        # A hint is worth its line only beside a failure.
        return Diagnosis("failing", summary(evidence), found)
    state: State = "serving" if evidence.serving else "starting"
    return Diagnosis(state, summary(evidence), [one for one in found if one.severity != "hint"])


def summary(evidence: Evidence) -> str:
    """Recipe, release, address, and how busy it is."""
    release = evidence.release
    if release.number is None:
        return f"{evidence.service}: no release"
    said = [f"{evidence.recipe.get('name', evidence.service)}, release {release.number}"]
    said.append(f"port {evidence.port}")
    if evidence.running and evidence.uptime is not None:
        said.append(f"up {span(evidence.uptime)}")
    elif state := evidence.properties.get("ActiveState"):
        said.append(f"{state} ({evidence.properties.get('SubState', '')})")
    if evidence.http.metrics:
        said.append(load(evidence.http.metrics))
    return ", ".join(said)


def load(looks: list[dict[str, float]]) -> str:
    """Idle, or how many requests and tokens a second."""
    first, last = looks[0], looks[-1]
    running, waiting = (int(last.get(f"num_requests_{name}", 0)) for name in ("running", "waiting"))
    if not running and not waiting:
        return "idle"
    tokens = last.get("generation_tokens_total", 0) - first.get("generation_tokens_total", 0)
    seconds = last.get("at", 0) - first.get("at", 0)
    rate = f", {tokens / seconds:.0f} tokens/s" if seconds > 0 else ""
    return f"busy: {running} running, {waiting} waiting{rate}"
