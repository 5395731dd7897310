"""Resolves an engine's lock with uv: every package and the hashes of its wheels, for an architecture and a Python."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from yaml import safe_dump

from sparkops.errors import InputError
from sparkops.project import yaml
from sparkops.recipes.load import Catalogue
from sparkops.recipes.schema import Engine

MACHINES = ("aarch64", "x86_64")
PYTHON = "3.12"
# Ubuntu 24.04's, which is DGX OS 7's base.
MANYLINUX = "manylinux_2_39"


@dataclass(frozen=True)
class Resolution:
    """python: X.Y, None: the engine's own. exclude_newer: a date for uv. index_url: a simple index."""

    python: str | None
    exclude_newer: str | None
    index_url: str


@dataclass(frozen=True)
class Written:
    """A lock that was written: its packages, and those that differ from the lock before (None: there was none)."""

    file: str
    machines: list[str]
    packages: int
    differ: list[str] | None

    def __str__(self) -> str:
        about = f"{self.packages} packages for {', '.join(self.machines)}"
        nothing = [] if self.differ is None else ["nothing differs from before"]
        return "\n  ".join([f"{self.file}: {about}", *(self.differ or nothing)])


def lock_engine(
    catalogue: Catalogue, folder: Path, name: str, machines: Sequence[str], how: Resolution
) -> list[Written]:
    """Resolve engine `name` (NAME-VERSION) into `folder`, with its YAML where there is none.

    machines: architectures; none: those of the engine, or both. Raises InputError: no such version, no uv, or
    an engine file in `folder` that names other locks.
    """
    engine = catalogue.engine(name, locked=False) if name in catalogue.names("engines") else _new(name)
    own = folder / f"{name}.yml"
    _same_python(own, engine, how.python)
    python = how.python or engine.python or PYTHON
    old = {machine: Path(lock) for machine, lock in engine.locks.items()}
    before = {machine: lock.read_text("utf-8") for machine, lock in old.items() if lock.is_file()}
    chosen = list(machines) or list(engine.locks) or list(MACHINES)
    if python != engine.python:
        chosen += [machine for machine in engine.locks if machine not in chosen]
    # The engine's other locks come along: this folder's engine hides the one that they belong to.
    texts = {**before, **{machine: resolve(engine, machine, python, how) for machine in chosen}}
    files = _files(own, engine, texts)
    folder.mkdir(parents=True, exist_ok=True)
    done = []
    for file in dict.fromkeys(files.values()):
        its = [machine for machine in texts if files[machine] == file]
        _write(folder / file, texts[its[0]])
        was = next((before[machine] for machine in its if machine in before), None)
        differ = None if was is None else differences(pins(was), pins(texts[its[0]]))
        done.append(Written(str(folder / file), its, len(pins(texts[its[0]])), differ))
    if not own.exists():
        _write(own, _engine_yaml(engine, python, files))
    return done


def resolve(engine: Engine, machine: str, python: str, how: Resolution) -> str:
    """The lock's text. Raises InputError with what uv says."""
    with tempfile.TemporaryDirectory(prefix="sparkops-lock-") as scratch:
        lock = Path(scratch) / "lock"
        overrides = Path(scratch) / "overrides"
        overrides.write_text("".join(f"{line}\n" for line in engine.overrides), "utf-8")
        argv = [*_uv(), *compile_words(machine, python, how), "--output-file", str(lock), "--overrides", str(overrides)]
        requirement = f"{engine.name}=={engine.version}\n"
        ran = subprocess.run(argv, input=requirement, capture_output=True, text=True, check=False)
        if ran.returncode:
            said = "\n".join(ran.stderr.strip().splitlines()[-12:])
            raise InputError(f"uv could not resolve {requirement.strip()} for {machine}, Python {python}:\n{said}")
        return lock.read_text("utf-8")


def compile_words(machine: str, python: str, how: Resolution) -> list[str]:
    """The words after `uv`: hashes, wheels only, and nothing of this machine in the result."""
    words = ["pip", "compile", "-", "--quiet", "--no-config", "--generate-hashes", "--only-binary", ":all:"]
    words += ["--python-version", python, "--python-platform", f"{machine}-{MANYLINUX}"]
    words += ["--default-index", how.index_url, "--no-emit-index-url", "--no-annotate", "--no-header"]
    return [*words, "--exclude-newer", how.exclude_newer] if how.exclude_newer else words


def pins(lock: str) -> dict[str, str]:
    """package -> version of a lock's text."""
    return dict(re.findall(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", lock, re.MULTILINE))


def differences(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """One line a package: `torch 2.10.0 -> 2.11.0`, `+ name version`, `- name version`."""
    lines = []
    for name in sorted({*before, *after}):
        old, new = before.get(name), after.get(name)
        if old and new and old != new:
            lines.append(f"{name} {old} -> {new}")
        elif old != new:
            lines.append(f"+ {name} {new}" if new else f"- {name} {old}")
    return lines


def _uv() -> list[str]:
    """uv as a program: in PATH, beside this Python, or its module."""
    beside = Path(sys.executable).with_name("uv")
    found = shutil.which("uv") or (str(beside) if beside.is_file() else None)
    if found:
        return [found]
    if importlib.util.find_spec("uv"):
        return [sys.executable, "-m", "uv"]
    raise InputError("locks are resolved by uv, which is not installed here", hint="for example: pip install uv")


def _new(name: str) -> Engine:
    found = re.fullmatch(r"([A-Za-z0-9][A-Za-z0-9._-]*)-(\d[A-Za-z0-9.+!]*)", name)
    if not found:
        raise InputError(f"{name!r} is not NAME-VERSION", where=yaml.position(name), hint="for example: vllm-0.24.0")
    package, version = found.groups()
    probe = ["bin/vllm", "--version"] if package == "vllm" else ["bin/python", "--version"]
    return Engine(name=package, version=version, python=PYTHON, expect_cuda=None, locks={}, probe=probe)


def _same_python(own: Path, engine: Engine, python: str | None) -> None:
    """The user's engine file has one Python for all its locks, and is not rewritten."""
    if python and own.exists() and engine.python not in (None, python):
        where = yaml.position(yaml.load(own), "python")
        raise InputError(f"it says Python {engine.python}, not {python}", where=where, hint="change it there first")


def _files(own: Path, engine: Engine, texts: Mapping[str, str]) -> dict[str, str]:
    """architecture -> the file in the engine's folder to write. An engine file of the user's says where."""
    if not own.exists():
        alike = len(set(texts.values())) == 1
        return {machine: f"{engine.id}.lock" if alike else f"{engine.id}.{machine}.lock" for machine in texts}
    document = yaml.load(own)
    files: dict[str, str] = {}
    for machine, text in texts.items():
        if machine not in engine.locks:
            hint = f"add a line there: {machine}: {engine.id}.{machine}.lock"
            raise InputError(f"it names no lock for {machine}", where=yaml.position(document, "locks"), hint=hint)
        files[machine] = os.path.relpath(engine.locks[machine], own.parent)
        shared = [other for other, file in files.items() if file == files[machine] and texts[other] != text]
        if shared:
            message = f"{machine} and {shared[0]} need different locks now, and share {files[machine]}"
            where = yaml.position(document.get("locks"), machine)
            raise InputError(message, where=where, hint=f"name one each: {machine}: {engine.id}.{machine}.lock")
    return files


def _engine_yaml(engine: Engine, python: str, files: Mapping[str, str]) -> str:
    cuda = f'"{engine.expect_cuda}"' if engine.expect_cuda else "null   # not looked at; torch/version.py has it"
    locks = "".join(f"  {machine}: {file}\n" for machine, file in files.items())
    head = f'name: {engine.name}\nversion: {_quoted(engine.version)}\npython: "{python}"\nexpect_cuda: {cuda}\n'
    said = {"probe": engine.probe, "overrides": engine.overrides, "files": engine.files}
    more = safe_dump({name: value for name, value in said.items() if value}, default_flow_style=None, sort_keys=False)
    return f"{head}locks:\n{locks}{more}"


def _quoted(version: str) -> str:
    """A version as YAML text: 1.0 is a number to YAML."""
    return f'"{version}"' if version.count(".") < 2 else version


def _write(path: Path, text: str) -> None:
    """Beside, on disk, then renamed: a reader sees the old file or the new one."""
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", delete=False
    ) as file:
        try:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
            Path(file.name).chmod(0o644)
            Path(file.name).replace(path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise
