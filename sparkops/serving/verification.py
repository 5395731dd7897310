"""What the answers of verify's tasks mean: one row a check. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

State = Literal["pass", "fail", "unknown"]
# How a task that has ended well, or not, counts; anything else did not look.
STATES: Mapping[str, State] = {"ok": "pass", "changed": "pass", "ignored": "fail", "failed": "fail"}


@dataclass(frozen=True)
class Check:
    """A row. unknown: it could not be looked at; that is no failure by itself."""

    check: str
    state: State
    detail: str = ""


@dataclass(frozen=True)
class Answer:
    """How a task ended, what it said, and its result."""

    state: str
    msg: str
    result: Mapping[str, Any]


SKIPPED = Answer("skipped", "not looked at", {})


def checks(answers: Mapping[str, Answer]) -> list[Check]:
    """The rows of a node, from the answers of its tasks by module."""
    drift = answers.get("serving_drift", SKIPPED)
    found = drift.result
    if "drift" not in found:
        return [Check("release", "fail" if drift.state == "failed" else "unknown", drift.msg)]
    if found["release"] is None:
        return [Check("release", "fail", "nothing is deployed")]
    return [
        _release(found),
        _edited("unit", found["drift"], lambda one: one.startswith("unit")),
        _edited("release files", found["drift"], lambda one: not one.startswith(("unit", "patch ", "engine"))),
        _engine(found),
        _patches(found["patches"]),
        _checkpoint(answers.get("checkpoint_present", SKIPPED), found),
        _serving(answers.get("http_ready", SKIPPED), found["recipe"]),
        _log(answers.get("log_expect", SKIPPED)),
    ]


def _release(found: Mapping[str, Any]) -> Check:
    name = (found["recipe"] or {}).get("name", "no recipe")
    told = f"{found['release']}, {name}"
    return Check("release", "pass", told) if found["confirmed"] else Check("release", "fail", f"{told}: not confirmed")


def _edited(what: str, drift: list[str] | None, ours: Any) -> Check:
    if drift is None:
        return Check(what, "unknown", "the release has not kept what they were; the next deploy does")
    edits = [one for one in drift if ours(one)]
    return Check(what, "fail" if edits else "pass", f"edited: {', '.join(edits)}" if edits else "as deployed")


def _engine(found: Mapping[str, Any]) -> Check:
    contents, adopted = found["contents"], found.get("adopted")
    if adopted:
        gone = "engine gone" in (found["drift"] or [])
        told = "is gone" if gone else "is adopted; deploy --check compares it with the lock"
        return Check("engine", "fail" if gone else "pass", f"{adopted} {told}")
    if contents is None:
        return Check("engine", "fail", f"{found['engine'] or 'it'} is gone")
    if contents["problems"]:
        return Check("engine", "fail", "; ".join(contents["problems"]))
    return Check("engine", "pass", f"{found['engine']}, {contents['packages']} packages as locked")


def _patches(patches: Mapping[str, str] | None) -> Check:
    if patches is None:
        return Check("patches", "unknown", "there is no engine of sparkops' to look at")
    wrong = [f"{name} {state}" for name, state in patches.items() if state != "applied"]
    return Check("patches", "fail" if wrong else "pass", ", ".join(wrong or patches) or "none")


def _checkpoint(answer: Answer, found: Mapping[str, Any]) -> Check:
    wanted, has = (found["recipe"] or {}).get("model_revision"), found["checkpoint"]["revision"]
    if answer.state == "ok" and wanted and has and not has.startswith(wanted):
        return Check("checkpoint", "fail", f"revision {has}, the recipe names {wanted}")
    return Check("checkpoint", STATES.get(answer.state, "unknown"), answer.msg)


def _serving(answer: Answer, recipe: Mapping[str, Any] | None) -> Check:
    if answer.state != "ok":
        return Check("serving", STATES.get(answer.state, "unknown"), answer.msg)
    wanted, length = (recipe or {}).get("max_model_len"), answer.result.get("max_model_len")
    told = f"{answer.result.get('model')}, max_model_len {length}, a token generated"
    if wanted is not None and length is not None and length != wanted:
        return Check("serving", "fail", f"{told}; the recipe names {wanted}")
    return Check("serving", "pass", told)


def _log(answer: Answer) -> Check:
    if answer.state == "ok" and answer.result.get("missing"):
        return Check("log", "unknown", answer.msg)
    return Check("log", STATES.get(answer.state, "unknown"), answer.msg or "the expected lines are there")
