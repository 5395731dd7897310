"""From a task's answers to its result: registered value, state, and the event."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from sparkops.errors import InputError
from sparkops.events import Handler, Notice, State, Task
from sparkops.node.api import Failure
from sparkops.node.modes import mode_bits
from sparkops.playbook.action import Acted
from sparkops.playbook.compile import HIDDEN, Compiled, Step
from sparkops.playbook.model import Play
from sparkops.playbook.scope import Scope
from sparkops.runner.options import Options

# A loop ends as its worst item does.
WORST = ("failed", "unknown", "changed", "ok", "skipped")
NOT_MET = "Conditional result was False"
NO_ITEMS = "No items in the list"


@dataclass(frozen=True)
class Answer:
    """How one step ended: as the node said it, or as the controller did it."""

    state: str
    msg: str
    diff: str | None
    result: dict[str, Any]
    seconds: float

    @property
    def changed(self) -> bool:
        """Whether it has changed something: as in Ansible, a program that ran and failed has too."""
        if self.state == "failed":
            return bool(self.result.get("changed", "rc" in self.result))
        return self.state == "changed"


def of_action(acted: Acted) -> Answer:
    """What the controller did, as an answer."""
    return Answer(acted.state, acted.msg, None, acted.result, 0.0)


def acted(compiled: Compiled) -> list[Answer]:
    """The answers of what the controller did for a task."""
    return [of_action(step.acted) for step in compiled.steps if step.acted is not None]


def known(compiled: Compiled) -> tuple[dict[str, Any], dict[str, Any]]:
    """(Registered and set, included) variables of a task that the controller did."""
    facts: dict[str, Any] = {}
    included: dict[str, Any] = {}
    for step in compiled.steps:
        if step.acted is not None:
            facts |= step.acted.facts
            included |= step.acted.included
    if compiled.task.register:
        pairs = zip(compiled.steps, acted(compiled), strict=True)
        judged = [judge(compiled, step, answer) for step, answer in pairs]
        facts[compiled.task.register] = as_variable(joined(compiled, judged))
    return facts, included


def as_variable(answer: Answer) -> dict[str, Any]:
    """The result under the names that Ansible registers."""
    value = {**answer.result, "changed": answer.changed}
    if "results" in value:
        # A loop says `failed` only when it is.
        return {**value, "skipped": answer.state == "skipped"} | ({"failed": True} if answer.state == "failed" else {})
    if answer.state == "skipped":
        return {**value, "skipped": True}
    value["failed"] = answer.state == "failed"
    if answer.msg or "rc" in value:
        value.setdefault("msg", answer.msg)
    return value


def skipped(condition: Any) -> Answer:
    """The answer of a task that did not run, since a condition does not hold."""
    return Answer("skipped", str(condition), None, {"skip_reason": NOT_MET, "false_condition": condition}, 0.0)


def joined(compiled: Compiled, answers: list[Answer]) -> Answer:
    """A task's answers as one; a loop's stand under `results`, with the items that were left out in their place."""
    if not compiled.looped:
        return answers[0] if answers else skipped(compiled.reason)
    if not answers and not compiled.skipped_items:
        return Answer("skipped", NO_ITEMS, None, {"results": [], "skipped_reason": NO_ITEMS}, 0.0)
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
    summary = {"failed": "One or more items failed", "skipped": "All items skipped"}.get(state, "All items completed")
    result: dict[str, Any] = {"results": results, "msg": summary}
    if state == "failed":
        result["changed"] = any(answer.changed for answer in answers)
    return Answer(
        state,
        "; ".join(dict.fromkeys(telling)) or (summary if state == "skipped" else ""),
        "\n".join(answer.diff for answer in answers if answer.diff) or None,
        result,
        sum(answer.seconds for answer in answers),
    )


def judge(compiled: Compiled, step: Step, answer: Answer) -> Answer:
    """What changed_when and failed_when make of one step's answer; they see it under its registered name. One that
    cannot be evaluated fails the task.
    """
    try:
        return _judged(compiled, step, answer)
    except InputError as error:
        return failed(answer, error)


def failed(answer: Answer, error: InputError, changed: bool | None = None) -> Answer:
    """The answer of a task whose conditions cannot be evaluated."""
    told = {"msg": error.message, "changed": answer.changed if changed is None else changed}
    return replace(answer, state="failed", msg=str(error), result={**answer.result, **told})


def _judged(compiled: Compiled, step: Step, answer: Answer) -> Answer:
    task = compiled.task
    if answer.state == "skipped" or compiled.error or (task.failed_when is None and task.changed_when is None):
        return answer
    scope = _seeing(compiled, step, answer)
    changed = answer.changed if task.changed_when is None else scope.all_true(task.changed_when)
    if answer.state == "failed" and task.changed_when is not None:
        answer = replace(answer, result={**answer.result, "changed": changed})
    elif answer.state in ("ok", "changed"):
        answer = replace(answer, state="changed" if changed else "ok")
    if task.failed_when is None:
        return answer
    wrong = bool(task.failed_when) and scope.all_true(task.failed_when)
    told = {**answer.result, "failed_when_result": wrong}
    if wrong:
        return replace(answer, state="failed", result={**told, "changed": changed})
    if answer.state == "failed":
        # The module failed and the playbook says that this is none.
        return replace(answer, state="changed" if changed else "ok", result=told)
    return replace(answer, result=told)


def until_met(compiled: Compiled, step: Step, answer: Answer) -> bool:
    """Whether `until` holds for an answer; retries without until go on until it does not fail."""
    conditions = compiled.task.until
    if not conditions:
        return answer.state != "failed"
    return _seeing(compiled, step, answer).all_true(conditions)


def _seeing(compiled: Compiled, step: Step, answer: Answer) -> Scope:
    """The task's names with its result; by now nothing is awaited any more."""
    scope = compiled.scope.settled()
    name = compiled.task.register
    return scope.with_local({**step.local, **({name: as_variable(answer)} if name else {})})


def event(
    host: str, play: Play, compiled: Compiled, answer: Answer, options: Options, handler: bool, rescued: bool
) -> Task | Handler:
    """What reporters are told. `no_log` hides all but the state; a diff is there with --diff alone."""
    task = compiled.task
    state: State = answer.state  # type: ignore[assignment]
    result = answer.result
    if state == "failed" and answer.changed:
        result = {**result, "changed": True}
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
        check=options.check if compiled.check is None else compiled.check,
        seconds=answer.seconds,
        msg=HIDDEN if compiled.no_log else answer.msg,
        diff=answer.diff if options.diff and not compiled.no_log and not _private(compiled, answer) else None,
        result={} if compiled.no_log else result,
    )


def warnings(event: Task | Handler) -> list[Notice]:
    """What a module's `warnings` say, as in Ansible's results, each once; a loop's are its items'."""
    items = [event.result, *_listed(event.result, "results")]
    said = [str(text) for one in items if isinstance(one, dict) for text in _listed(one, "warnings")]
    return [Notice(text, event.host) for text in dict.fromkeys(said)]


def _listed(result: dict[str, Any], key: str) -> list[Any]:
    """A list of a result; [] when it has none of that name (debug may show a variable of any kind under it)."""
    value = result.get(key)
    return value if isinstance(value, list) else []


def _private(compiled: Compiled, answer: Answer) -> bool:
    """Whether a task writes a file that is for its owner alone: its text is nobody else's either."""
    if compiled.task.module not in ("copy", "template"):
        return False
    modes = [step.frame.get("args", {}).get("mode") for step in compiled.steps]
    modes += [one.get("mode") for one in (answer.result, *answer.result.get("results", ()))]
    return any(_closed(mode) for mode in modes if isinstance(mode, str))


def _closed(mode: str) -> bool:
    """Whether a mode leaves the group and others nothing, on a file as it is made."""
    try:
        return not mode_bits(mode, 0o644, False, 0o022) & 0o077
    except Failure:
        return False


def names(compiled: Compiled) -> list[str]:
    """What a node may remember a handler by: its name as it is now, and as it is written."""
    return list(dict.fromkeys((compiled.name, compiled.task.name)))


def marked(play: Play, compiled: Compiled, handler: bool) -> Compiled:
    """A handler's last step tells the node to forget the notification once it has run; other tasks are as they are."""
    if not handler or compiled.local:
        return compiled
    mark = {"scope": play.scope, "handler": names(compiled)}
    last = replace(compiled.steps[-1], frame={**compiled.steps[-1].frame, **mark})
    return replace(compiled, steps=(*compiled.steps[:-1], last))
