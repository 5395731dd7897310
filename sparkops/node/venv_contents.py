"""What an engine's venv holds, beside what its lock says and what its packages have recorded.

Packages and versions are compared with the venv's own copy of the lock; every file that a package's RECORD names must
be there with its size, and Python sources with their sha256. Gigabytes of libraries are not read.
"""

from __future__ import annotations

import os

from sparkops.node import drift

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from sparkops.node.api import Node

LOCK = "requirements.lock"
# Problems that are told one by one.
TOLD = 20


def contents(engine: str, node: Node) -> dict[str, Any]:
    """packages (how many), problems (text, up to TOLD of them and a count of the others)."""
    from glob import escape, glob

    from sparkops.node.facts import read

    noted = drift.document(os.path.join(engine, "sparkops.json"))
    folders = glob(os.path.join(escape(engine), "lib", "python3*", "site-packages"))
    if not folders:
        return {"packages": 0, "problems": ["there are no site-packages"]}
    # Further files of the engine's own; they may be the metadata of a package that no lock knows.
    own = noted.get("files", {})
    known = {file.partition("/")[0] for file in own}
    names = [name for name in os.listdir(folders[0]) if name not in known]
    there = {name: version for name, version in map(_of_folder, names) if version}
    problems = []
    lock = drift.raw(os.path.join(engine, LOCK))
    if lock is None or _sha256(lock).hex() != noted.get("lock"):
        problems.append(f"{LOCK} is not the one it was built from")
    problems += compared(locked(read(os.path.join(engine, LOCK))), there)
    patched = {str(patch["file"]) for patch in noted.get("patches", ())}
    problems += files(folders[0], names, patched, node)
    problems += [f"{file} is not what the engine's data says" for file in own if _hex(folders[0], file) != own[file]]
    more = len(problems) - TOLD
    return {"packages": len(there), "problems": problems[:TOLD] + ([f"and {more} more"] if more > 0 else [])}


def locked(text: str) -> dict[str, str]:
    """{name: version} of a lock's lines."""
    found = {}
    for line in text.splitlines():
        name, equals, rest = line.partition("==")
        if equals and not line.startswith((" ", "#", "-")):
            found[_normal(name.partition("[")[0].strip())] = rest.replace(";", " ").split()[0]
    return found


def compared(wanted: dict[str, str], there: dict[str, str]) -> list[str]:
    """How the packages that are there differ from those of the lock."""
    found = []
    for name in sorted({*wanted, *there}):
        lock, has = wanted.get(name), there.get(name)
        if has is None:
            found.append(f"{name} {lock} is missing")
        elif lock is None:
            found.append(f"{name} {has} is not in the lock")
        elif has != lock:
            found.append(f"{name} is {has}, locked is {lock}")
    return found


def files(folder: str, names: list[str], patched: set[str], node: Node) -> list[str]:
    """The recorded files that are gone or not what was recorded; those that patches change are looked at elsewhere."""
    recorded = records(folder, names)
    found = []
    for done, (name, wanted) in enumerate(sorted(recorded.items())):
        node.progress(done, len(recorded), "files")
        if name in patched or "__pycache__" in name:
            continue
        path = os.path.join(folder, name)
        try:
            size = os.stat(path).st_size
        except OSError:
            found.append(f"{name} is gone")
            continue
        if not any(told in ("", str(size)) for told, _ in wanted):
            found.append(f"{name} has another size")
        elif name.endswith(".py") and not any(told in ("", _recorded(path)) for _, told in wanted):
            found.append(f"{name} was edited")
    return found


def records(folder: str, names: list[str]) -> dict[str, set[tuple[str, str]]]:
    """{file: {(size, sha256 as RECORD has it)}}: packages that share a folder may each have recorded a file of it."""
    import csv

    found: dict[str, set[tuple[str, str]]] = {}
    for name in names:
        if not name.endswith(".dist-info"):
            continue
        try:
            with open(os.path.join(folder, name, "RECORD"), encoding="utf-8", newline="") as file:
                for row in csv.reader(file):
                    if len(row) == 3 and not row[0].endswith("/RECORD"):
                        found.setdefault(os.path.normpath(row[0]), set()).add((row[2], row[1]))
        except OSError:
            found.setdefault(name + "/RECORD", set()).add(("", ""))
    return found


def _hex(folder: str, file: str) -> str:
    """The sha256 of a file in a folder; "" when there is none."""
    data = drift.raw(os.path.join(folder, file))
    return "" if data is None else _sha256(data).hex()


def _of_folder(name: str) -> tuple[str, str]:
    """(package, version) of a NAME-VERSION.dist-info folder; ("", "") for anything else."""
    if not name.endswith(".dist-info"):
        return "", ""
    package, _, version = name[: -len(".dist-info")].partition("-")
    return _normal(package), version


def _normal(name: str) -> str:
    """PEP 503."""
    return "-".join(part for part in name.lower().replace("_", "-").replace(".", "-").split("-") if part)


def _sha256(data: bytes) -> bytes:
    from hashlib import sha256

    return sha256(data).digest()


def _recorded(path: str) -> str:
    """A file's sha256 as a RECORD has it."""
    from base64 import urlsafe_b64encode

    return "sha256=" + urlsafe_b64encode(_sha256(drift.raw(path) or b"")).rstrip(b"=").decode()
