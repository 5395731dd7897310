"""The same small plays through ansible-core and through sparkops: the same tasks, states and values for each host.

Cases are in plays/*.yml, by topic. `play` is a playbook, `tasks` only its tasks; `files` are put beside it; `hosts`
(a and b when nothing is said) make an inventory, `inventory` names one of `files`; `options` are the command line's.
What differs on purpose stands in differences.yml under `plays`, by case and task; ADR 008 says why.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest
import yaml

from sparkops.errors import InputError, InputErrors
from sparkops.events import Event, Handler, HostEnd, Recap, Task
from sparkops.inventory.inventory import load
from sparkops.node import bundle
from sparkops.playbook import modules
from sparkops.playbook.files import Files
from sparkops.playbook.parse import playbook
from sparkops.playbook.template import Templar
from sparkops.project.values import Text
from sparkops.runner.options import Options
from sparkops.runner.run import Run, Target
from sparkops.transport.address import Address
from sparkops.transport.local import LocalChannel
from sparkops.transport.session import Session

HERE = Path(__file__).parent
WORKER = HERE / "ansible_plays.py"
DIFFERENCES: dict[str, Any] = yaml.safe_load((HERE / "differences.yml").read_text("utf-8")).get("plays", {})
CASES: dict[str, dict[str, Any]] = {
    f"{path.stem}: {name}": case
    for path in sorted((HERE / "plays").glob("*.yml"))
    for name, case in yaml.safe_load(path.read_text(encoding="utf-8")).items()
}
HEAD = "- hosts: all\n  gather_facts: false\n  tasks:\n"
# Modules whose whole result is compared; of others, and of those that failed otherwise, only how they ended.
TOLD = frozenset(("debug", "set_fact", "assert", "fail", "include_vars", "command"))
FAILS = frozenset(("fail",))
# What a run has of its own: times, how it was called, tracebacks. Messages of failed programs are in our own words.
OWN = frozenset((
    "changed", "cmd", "delta", "deprecations", "diff", "end", "exception", "failed_when_suppressed_exception",
    "invocation", "start", "warnings",
))  # fmt: skip


def _written(case: Mapping[str, Any], folder: Path) -> Path:
    """Put a case's files into a folder; the inventory's path."""
    files = dict(case.get("files", {}))
    hosts = "".join(f"    {name}:\n" for name in case.get("hosts", ("a", "b")))
    files.setdefault("hosts.yml", f"all:\n  hosts:\n{hosts}")
    files["play.yml"] = case["play"] if "play" in case else HEAD + indent(case["tasks"], "    ")
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder / str(case.get("inventory", "hosts.yml"))


def _argv(case: Mapping[str, Any], inventory: Path) -> list[str]:
    options = case.get("options", {})
    found = ["-i", str(inventory)]
    for key in ("tags", "skip_tags"):
        found += [f"--{key.replace('_', '-')}", ",".join(options[key])] if key in options else []
    found += ["-e", json.dumps(options["extra"])] if "extra" in options else []
    found += ["--limit", options["limit"]] if "limit" in options else []
    found += ["--check"] if options.get("check") else []
    return [*found, "play.yml"]


@pytest.fixture(scope="session")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What ansible-core makes of all cases, from one process."""
    base = tmp_path_factory.mktemp("theirs")
    given = []
    for number, case in enumerate(CASES.values()):
        folder = base / str(number) / "case"
        folder.mkdir(parents=True)
        inventory = _written(case, folder)
        given.append({"folder": str(folder), "argv": _argv(case, inventory), "out": str(base / f"{number}.json")})
    environment = {
        **os.environ,
        "ANSIBLE_HOME": str(base / "home"),
        "ANSIBLE_TRANSPORT": "local",
        "ANSIBLE_PYTHON_INTERPRETER": sys.executable,
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_FORKS": "16",
    }
    subprocess.run([sys.executable, str(WORKER)], input=json.dumps(given), text=True, check=True, env=environment)
    return {name: json.loads((base / f"{number}.json").read_text()) for number, name in enumerate(CASES)}


def ours(case: Mapping[str, Any], folder: Path, state: Path) -> dict[str, Any]:
    """The same case through sparkops, on this machine's executor."""
    inventory = _written(case, folder)
    options = dict(case.get("options", {}))
    options |= {key: frozenset(options[key]) for key in ("tags", "skip_tags") if key in options}
    options["extra"] = {
        key: Text(value) if isinstance(value, str) else value for key, value in options.get("extra", {}).items()
    }
    events: list[Event] = []
    on_node = {name for name in modules.names() if modules.runs_on_node(name)}

    writing = threading.Lock()

    def local(address: Address) -> Session:
        # The hosts are one machine, yet each has a home of its own, where it keeps its state.
        python = state / address.name
        state.mkdir(exist_ok=True)
        # By another process: a fork elsewhere here may hold a file open for writing, and then it cannot be executed.
        script = f'#!/bin/sh\nHOME={state}/home-{address.name} exec {sys.executable} "$@"\n'
        with writing:
            if not python.exists():
                subprocess.run(["install", "-m", "755", "/dev/stdin", python], input=script, text=True, check=True)
        return Session(LocalChannel(str(python)), bundle.preamble(on_node), address.name)

    os.chdir(folder)
    try:
        templar = Templar()
        plays = playbook(Path("play.yml"), lambda value: templar.render(value, options["extra"]))
        target = Target(load([str(inventory)], also=[folder]), "all", options.get("limit"))
        run = Run(
            plays,
            target,
            Options(**options, state_dir="~/state", lease=False),
            events.append,
            Files(lambda _: [], lambda _: {}),
            local,
            [folder],
        )
        run.check()
        code = run.execute()
    except InputError as error:
        several = error.errors if isinstance(error, InputErrors) else [error]
        return {"error": "; ".join(map(str, several)), "code": 2}
    recap = events[-1]
    assert isinstance(recap, Recap)
    said = [f"{event.host}: {event.msg}" for event in events if isinstance(event, HostEnd) and event.msg]
    steps = [_step(event) for event in events if isinstance(event, (Task, Handler))]
    return {"events": steps, "recap": recap.hosts, "code": code, "error": "", "said": "; ".join(said)}


def _step(event: Task | Handler) -> list[Any]:
    state = "failed" if event.state == "rescued" else event.state
    return [event.host, event.event, event.task, state, event.module, event.result]


def compared(ran: dict[str, Any], folder: Path) -> dict[str, Any]:
    """By host, what is compared: its steps in order, and its counts."""
    found: dict[str, Any] = {host: {"steps": [], "recap": _counts(counts)} for host, counts in ran["recap"].items()}
    events = json.loads(json.dumps(ran["events"], default=str).replace(str(folder), "FOLDER"))
    for host, kind, task, state, action, result in events:
        module = action.removeprefix("ansible.builtin.").removeprefix("ansible.legacy.")
        if module == "meta":
            continue
        step = [kind, task.removeprefix("ansible.builtin."), state, _told(result, module, state)]
        steps = found[host]["steps"]
        if steps and module == "include_tasks" and state == "failed" and steps[-1][1] == step[1]:
            # Ansible tells first that it has come to an include, and then that there is no file.
            steps.pop()
        steps.append(step)
    return {host: one for host, one in found.items() if one["steps"]}


def _counts(counts: Mapping[str, int]) -> dict[str, int]:
    names = {"failures": "failed"}
    return {names.get(name, name): count for name, count in sorted(counts.items()) if count}


def _told(result: Any, module: str, state: str) -> Any:
    """What is compared of a result."""
    if module not in TOLD or "censored" in result or (state in ("failed", "ignored") and module not in FAILS):
        return {}
    if module == "command" or state == "skipped":
        result = {key: value for key, value in result.items() if key != "msg"}
    return _without_own(result, text=module == "fail")


def _without_own(value: Any, text: bool = False) -> Any:
    if isinstance(value, list):
        return [_without_own(one, text) for one in value]
    if not isinstance(value, dict):
        return value
    kept = {key: _without_own(one, text) for key, one in value.items() if key not in OWN and key[:8] != "_ansible"}
    # Ansible's `fail` says a number as it is; ours takes text.
    return {key: str(one) if text and key == "msg" else one for key, one in sorted(kept.items())}


@pytest.mark.parametrize("name", CASES)
def test_as_ansible_does(theirs: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "case"
    folder.mkdir()
    expected, found = theirs[name], ours(CASES[name], folder, tmp_path / "state")
    assert "events" in found, f"\nsparkops: {found['error']}\nAnsible: {expected['code']} {expected['error']}"
    assert not expected["error"], expected["error"]
    want, have = compared(expected, Path(expected["folder"])), compared(found, folder)
    if name in DIFFERENCES:
        assert want != have, "this is listed as a difference, and there is none"
        want, have = _but(want, DIFFERENCES[name]["ours"], None), _but(have, DIFFERENCES[name]["ours"], found)
    else:
        assert bool(found["code"]) == bool(expected["code"])
    assert have == want, f"{found['said']}\n{expected['said']}"


def _but(hosts: dict[str, Any], listed: Mapping[str, str], ran: dict[str, Any] | None) -> dict[str, Any]:
    """The steps without those that differ on purpose, which must have ended as listed in `ran` (ours)."""
    if ran is not None:
        ended = {step[1]: step[2] for one in hosts.values() for step in one["steps"] if step[1] in listed}
        assert ended == listed
    return {host: [step for step in one["steps"] if step[1] not in listed] for host, one in hosts.items()}


def test_the_listed_differences_are_cases() -> None:
    assert set(DIFFERENCES) <= set(CASES)


def test_there_are_enough() -> None:
    """What the issue asks for is 40."""
    assert len(CASES) >= 60
