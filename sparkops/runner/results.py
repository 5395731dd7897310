"""From a task's answers to its result: registered value, state, and the event."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from sparkops.events import Handler, State, Task
from sparkops.playbook.action import Acted
from sparkops.playbook.compile import Compiled, Step
from sparkops.playbook.model import Play
from sparkops.playbook.scope import Scope

# A loop ends as its worst item does.
WORST = ("failed", "unknown", "changed", "ok", "skipped")
HIDDEN = "hidden by no_log"


@dataclass(frozen=True)
class Answer:
    """How one step ended: as the node said it, or as the controller did it."""

    state: str
    msg: str
    diff: str | None
    result: dict[str, Any]
    seconds: float


def of_action(acted: Acted) -> Answer:
    """What the controller did, as an answer."""
    return Answer(acted.state, acted.msg, None, acted.result, 0.0)


def as_variable(answer: Answer) -> dict[str, Any]:
    """The result under the names that Ansible registers."""
    value = {**answer.result, "changed": answer.state == "changed", "failed": answer.state == "failed"}
    value.setdefault("msg", answer.msg)
    if answer.state == "skipped":
        value["skipped"] = True
    return value


def skipped(reason: str, looped: bool = False) -> Answer:
    """The answer of a task that did not run."""
    result: dict[str, Any] = {"skip_reason": "Conditional result was False", "false_condition": reason}
    return Answer("skipped", reason, None, {**result, "results": []} if looped else result, 0.0)


def joined(compiled: Compiled, answers: list[Answer]) -> Answer:
    """A task's answers as one; a loop's stand under `results`, with the items that were left out in their place."""
    if not answers:
        return skipped(compiled.reason, compiled.looped)
    if not compiled.looped:
        return answers[0]
    results: list[dict[str, Any]] = []
    ended = iter(zip(compiled.steps, answers, strict=False))
    left_out = {index: (local, reason) for index, local, reason in compiled.skipped_items}
    for index in range(len(compiled.steps) + len(left_out)):
        if index in left_out:
            local, reason = left_out[index]
            results.append({**as_variable(skipped(reason)), **local})
            continue
        pair = next(ended, None)
        if pair is None:
            break
        results.append({**as_variable(pair[1]), **pair[0].local})
    state = next(state for state in WORST if any(answer.state == state for answer in answers) or state == "skipped")
    telling = [answer.msg for answer in answers if answer.msg and answer.state == state]
    return Answer(
        state,
        "; ".join(dict.fromkeys(telling)),
        "\n".join(answer.diff for answer in answers if answer.diff) or None,
        {"results": results},
        sum(answer.seconds for answer in answers),
    )


def judge(compiled: Compiled, step: Step, answer: Answer) -> Answer:
    """What changed_when and failed_when make of one step's answer; they see it under its registered name."""
    task = compiled.task
    if answer.state == "skipped" or (task.failed_when is None and task.changed_when is None):
        return answer
    scope = _seeing(compiled, step, answer)
    if task.changed_when is not None and answer.state in ("ok", "changed"):
        answer = replace(answer, state="changed" if scope.all_true(task.changed_when) else "ok")
    if task.failed_when is None:
        return answer
    failed = bool(task.failed_when) and scope.all_true(task.failed_when)
    state = "failed" if failed else answer.state
    if state == "failed" and not failed:
        # The module failed and the playbook says that this is none: it has run, and so changed what it changes.
        state = "changed" if task.changed_when is None and "rc" in answer.result else "ok"
        if task.changed_when is not None:
            state = "changed" if scope.all_true(task.changed_when) else "ok"
    return replace(answer, state=state, result={**answer.result, "failed_when_result": failed})


def until_met(compiled: Compiled, step: Step, answer: Answer) -> bool:
    """Whether `until` holds for an answer; retries without until go on until it does not fail."""
    conditions = compiled.task.until
    if not conditions:
        return answer.state != "failed"
    return _seeing(compiled, step, answer).all_true(conditions)


def _seeing(compiled: Compiled, step: Step, answer: Answer) -> Scope:
    """The task's names with its result; by now nothing is awaited any more."""
    scope = replace(compiled.scope, pending=frozenset(), facts_pending=False, apart=False)
    name = compiled.task.register
    return scope.with_local({**step.local, **({name: as_variable(answer)} if name else {})})


def event(
    host: str, play: Play, compiled: Compiled, answer: Answer, check: bool, handler: bool, rescued: bool
) -> Task | Handler:
    """What reporters are told. `no_log` hides all but the state."""
    task = compiled.task
    state: State = answer.state  # type: ignore[assignment]
    if state == "failed":
        state = "ignored" if compiled.ignore else "rescued" if rescued else state
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
        msg=HIDDEN if compiled.no_log else answer.msg,
        diff=None if compiled.no_log else answer.diff,
        result={} if compiled.no_log else answer.result,
    )


def marked(play: Play, compiled: Compiled, handler: bool) -> Compiled:
    """A handler's last step tells the node to forget the notification once it has run; other tasks are as they are."""
    if not handler or compiled.local:
        return compiled
    mark = {"scope": play.scope, "handler": [compiled.task.name, *compiled.task.listen]}
    last = replace(compiled.steps[-1], frame={**compiled.steps[-1].frame, **mark})
    return replace(compiled, steps=(*compiled.steps[:-1], last))
