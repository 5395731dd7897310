"""From a step's answer to a task's result: registered value, state, and the event."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sparkops.events import Handler, State, Task
from sparkops.playbook.compile import Compiled
from sparkops.playbook.model import Play
from sparkops.playbook.scope import Scope
from sparkops.runner.window import Answer

# A loop ends as its worst item does.
WORST = ("failed", "unknown", "changed", "ok", "skipped")
HIDDEN = "hidden by no_log"


def as_variable(answer: Answer) -> dict[str, Any]:
    """The result under the names that Ansible registers."""
    value = {**answer.result, "changed": answer.state == "changed", "failed": answer.state == "failed"}
    value.setdefault("msg", answer.msg)
    if answer.state == "skipped":
        value["skipped"] = True
    return value


def skipped(compiled: Compiled) -> Answer:
    """The answer of a task that did not run."""
    result: dict[str, Any] = {"skip_reason": compiled.reason}
    if compiled.looped:
        result["results"] = []
    return Answer("skipped", compiled.reason, None, result, 0.0)


def joined(compiled: Compiled, answers: list[Answer]) -> Answer:
    """A loop's answers as one, with each item's under `results`."""
    if not compiled.looped:
        return answers[0]
    state = next(state for state in WORST if any(answer.state == state for answer in answers))
    results = [
        {**as_variable(answer), "item": step.item} for step, answer in zip(compiled.steps, answers, strict=False)
    ]
    telling = [answer.msg for answer in answers if answer.msg and answer.state == state]
    return Answer(
        state,
        "; ".join(dict.fromkeys(telling)),
        "\n".join(answer.diff for answer in answers if answer.diff) or None,
        {"results": results},
        sum(answer.seconds for answer in answers),
    )


def judge(compiled: Compiled, answer: Answer, scope: Scope) -> Answer:
    """What changed_when and failed_when make of it; they see the result under its registered name."""
    task = compiled.task
    if answer.state == "skipped" or (task.failed_when is None and task.changed_when is None):
        return answer
    value = as_variable(answer)
    scope = scope.with_values({**task.vars, **({task.register: value} if task.register else {})})
    if task.failed_when is not None:
        failed = scope.all_true(task.failed_when)
        state = "failed" if failed else ("changed" if answer.state == "failed" else answer.state)
        answer = replace(answer, state=state)
    if task.changed_when is not None and answer.state in ("ok", "changed"):
        answer = replace(answer, state="changed" if scope.all_true(task.changed_when) else "ok")
    return answer


def event(host: str, play: Play, compiled: Compiled, answer: Answer, check: bool, handler: bool) -> Task | Handler:
    """What reporters are told. `no_log` hides all but the state."""
    task = compiled.task
    state: State = answer.state  # type: ignore[assignment]
    if state == "failed" and task.ignore_errors:
        state = "ignored"
    kind = Handler if handler else Task
    return kind(
        host=host,
        play=play.name,
        task=compiled.name,
        source=str(task.position),
        module=task.module,
        state=state,
        check=check,
        seconds=answer.seconds,
        msg=HIDDEN if task.no_log else answer.msg,
        diff=None if task.no_log else answer.diff,
        result={} if task.no_log else answer.result,
    )
