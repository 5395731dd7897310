"""Compare the engines that sparkops built on a node with their locks. Nothing is changed, and no package is imported.

Example:
    - name: The engines are what their locks say
      engine_verify:
        home: /opt/sparkops
"""

from __future__ import annotations

import os

from sparkops.node.api import Arguments, Node, Outcome, Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Args(Arguments):
    home: Path  # sparkops_home; engines lie in its engines/


def apply(args: Args, node: Node) -> Outcome:
    """Always ok. Result: engines, each with name, built, tried, packages (of its lock) and differences.

    A difference has kind (missing | extra | version | file), package (or the file), locked and found (versions, or
    sha256; None: it has none there). An engine's own lock is checked against what was noted when it was built.
    """
    del node
    folder = os.path.join(args.home, "engines")
    found = [one for name in listed(folder) if (one := engine(os.path.join(folder, name), name)) is not None]
    wrong = sum(1 for one in found if one["differences"])
    return Outcome.ok(f"{len(found)} engines, {wrong} with differences", engines=found)


def listed(folder: str) -> list[str]:
    """The names in a folder; [] where there is none. Raises Failure."""
    from sparkops.node import files

    try:
        return sorted(os.listdir(folder))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise files.refusal("list", folder, error) from error


def engine(path: str, name: str) -> dict[str, Any] | None:
    """What is known of one environment; None for what sparkops did not build, and for a build under way."""
    from sparkops.node import files, patched, venv

    noted = venv.noted(path)
    if noted is None or venv.BUILDING in name:
        return None
    lock = os.path.join(path, "requirements.lock")
    site = patched.site_packages(os.path.join(path, "lib", "python3*", "site-packages"))
    text = files.read(lock) if os.path.isfile(lock) else b""
    wanted, optional = venv.pins(text.decode("utf-8", "replace"))
    sums = {"requirements.lock": (noted["lock"], patched.digest(text) if text else None)}
    for file, seen in [*noted.get("files", {}).items(), *((one["file"], one["sha256"]) for one in noted["patches"])]:
        there = os.path.join(site, file)
        sums[file] = (seen, files.sha256(there) if os.path.isfile(there) else None)
    # The further files may be the metadata of a package that no lock knows.
    own = {file.partition("/")[0] for file in noted.get("files", {})}
    differences = packages(wanted, optional, installed(listed(site), own))
    differences += [
        {"kind": "file", "package": file, "locked": was, "found": seen}
        for file, (was, seen) in sums.items()
        if was != seen
    ]
    about = {"name": name, "built": noted["built"], "tried": noted["tried"], "packages": len(wanted)}
    return {**about, "differences": differences}


def installed(names: list[str], own: set[str]) -> dict[str, str]:
    """package -> version by the names of site-packages' *.dist-info folders, but for those in `own`."""
    from sparkops.node import venv

    suffix = ".dist-info"
    found = {}
    for name in names:
        if name.endswith(suffix) and name not in own:
            package, _, version = name[: -len(suffix)].partition("-")
            found[venv.normalized(package)] = version
    return found


def packages(wanted: dict[str, str], optional: set[str], found: dict[str, str]) -> list[dict[str, Any]]:
    """The differences, by package. optional: those that the lock wants on some platforms alone."""
    differences = []
    for package in sorted({*wanted, *found}):
        locked, seen = wanted.get(package), found.get(package)
        if locked == seen or (seen is None and package in optional):
            continue
        kind = "missing" if seen is None else "extra" if locked is None else "version"
        differences.append({"kind": kind, "package": package, "locked": locked, "found": seen})
    return differences
