"""An executable inventory: a program that answers `--list` (and `--host NAME`, unless it gives `_meta`) in JSON."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any, NoReturn

from sparkops.errors import InputError
from sparkops.inventory.documents import from_json, unsafe
from sparkops.inventory.groups import Sources
from sparkops.inventory.names import check_host_name
from sparkops.project.excerpt import caret

# Seconds that one call may take. A cloud's API may be slow; a script that waits for input never ends.
TIMEOUT = 120.0


def read_script(path: Path, sources: Sources) -> bool:
    """Adds what the program answers to `sources`; False when the file is a text with the x bit, not a program.

    Raises InputError: it failed, took too long, or did not answer as an inventory does.
    """
    script = _Script(path)
    answer = script.ask("--list")
    if answer is None:
        return False
    document = script.parsed(answer, "--list")
    hostvars = script.hostvars(document.pop("_meta")) if "_meta" in document else None
    hosts: dict[str, None] = {}
    for name, body in document.items():
        script.group(name, body, hosts, sources)
    for host in hosts:
        variables = script.host(host) if hostvars is None else hostvars.get(host, {})
        if not isinstance(variables, dict):
            script.fail(f"the variables of {host!r} are {_kind(variables)}; an object is needed")
        for variable, value in variables.items():
            sources.set(host, variable, value, script.name)
    sources.warnings += script.said
    return True


class _Script:
    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.name = str(path)
        self.said: list[str] = []

    def fail(self, message: str, said: str = "", hint: str | None = None) -> NoReturn:
        """`said` is what the script wrote to stderr."""
        raise InputError(message, where=self.name, hint=f"it said: {said}" if said else hint)

    def ask(self, *options: str) -> str | None:
        """What the program writes to stdout; None when the file is no program. Its stderr is kept in `said`."""
        try:
            # A session of its own, so that all it started ends with it.
            process = subprocess.Popen(
                [self.path, *options],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            if error.errno == errno.ENOEXEC:
                return None
            self.fail(f"the inventory script cannot be run: {error.strerror}", hint="check its first line (#!)")
        with process:
            try:
                out, err = process.communicate(timeout=TIMEOUT)
            except BaseException as error:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                if isinstance(error, subprocess.TimeoutExpired):
                    self.fail(f"the inventory script gave no answer to {options[0]} within {TIMEOUT:g} s")
                raise
        said = err.decode(errors="replace").strip()
        if process.returncode:
            self.fail(f"the inventory script ended with exit code {process.returncode}", said)
        if said:
            self.said.append(f"{self.name}: {said}")
        try:
            return out.decode()
        except UnicodeDecodeError:
            self.fail("the inventory script's answer is not UTF-8", said)

    def parsed(self, answer: str, option: str) -> dict[str, Any]:
        said = self.said[-1].partition(": ")[2] if self.said else ""
        try:
            value = from_json(json.loads(answer), self.name)
        except json.JSONDecodeError as error:
            line = answer.split("\n")[error.lineno - 1]
            place = f"line {error.lineno} column {error.colno} of its answer to {option}"
            message = f"not JSON: {error.msg}, {place}\n{caret(line, error.colno)}"
            self.fail(message, said, None if answer.strip() else "it wrote nothing")
        except RecursionError:
            self.fail(f"its answer to {option} is nested too deeply")
        if not isinstance(value, dict):
            self.fail(f"its answer to {option} is {_kind(value)}; an object is needed", said)
        return value

    def hostvars(self, meta: Any) -> dict[str, Any]:
        """`_meta.hostvars`; a script without `_meta` is asked for each host instead."""
        if not isinstance(meta, dict) or not isinstance(meta.get("hostvars"), dict):
            self.fail("'_meta' needs 'hostvars', an object with the variables of each host")
        profile = meta.get("profile", "inventory_legacy")
        if profile != "inventory_legacy":
            self.fail(f"'_meta.profile' is inventory_legacy, not {profile!r}")
        return dict(meta["hostvars"])

    def host(self, name: str) -> Any:
        answer = self.ask("--host", name) or ""
        return self.parsed(answer, f"--host {name}") if answer.strip() else {}

    def group(self, name: str, body: Any, hosts: dict[str, None], sources: Sources) -> None:
        """One entry of the answer: an object with hosts, vars and children; or, as of old, a list of hosts or vars."""
        if not name:
            self.fail("the name of a group is empty")
        sources.group(name)
        if not isinstance(body, dict):
            body = {"hosts": body}
        elif not body.keys() & {"hosts", "vars", "children"}:
            # As in Ansible: what comes in this form is no template.
            body = {"hosts": [name], "vars": unsafe(body)}
        for host in self.texts(name, body, "hosts"):
            try:
                check_host_name(host)
            except ValueError as error:
                self.fail(f"the group {name!r}: {error}")
            hosts[host] = None
            sources.host(host, str(self.path))
            sources.add_host(name, host)
        variables = body.get("vars", {})
        if not isinstance(variables, dict):
            self.fail(f"'vars' of the group {name!r} is {_kind(variables)}; an object is needed")
        for variable, value in variables.items():
            sources.set(name, variable, value, self.name)
        for child in self.texts(name, body, "children"):
            sources.group(child)
            sources.add_child(name, child, self.name)

    def texts(self, group: str, body: dict[str, Any], word: str) -> list[str]:
        names = body.get(word, [])
        if not isinstance(names, list) or not all(isinstance(item, str) and item for item in names):
            self.fail(f"'{word}' of the group {group!r} is {_kind(names)}; a list of names is needed")
        return names


def _kind(value: Any) -> str:
    kinds = {dict: "an object", list: "a list", str: "a text", bool: "a truth value", type(None): "null"}
    return kinds.get(type(value), "a number")
