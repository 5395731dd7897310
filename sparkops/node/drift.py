"""What of a deployed service is not as its release has it: edited by hand, or changed under it since.

Cheap: some small files are read and no program is run. A release keeps in SHA256SUMS what its files were, in `unit` the
unit as it was rendered, and in release.json the engine, kernel and driver; an engine's own note has its patches. What
an older release has not kept is None: not known.
"""

from __future__ import annotations

import json
import os

from sparkops.node import releases
from sparkops.node.facts import read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# What `systemctl show` must tell of a unit for `unit_edits`.
PROPERTIES = ("LoadState", "FragmentPath", "DropInPaths", "NeedDaemonReload")


def look(home: str, service: str, shown: dict[str, str]) -> dict[str, Any]:
    """drift (what differs, [] for nothing, None: not known), patches ({name: state}, None), engine, adopted, deployed.

    shown: the unit's PROPERTIES. adopted: the path of an environment that sparkops did not build, in place of engine.
    deployed: kernel and driver at the deploy.
    """
    current = os.path.join(releases.service_folder(home, service), "current")
    about = document(os.path.join(current, releases.META))
    engine, named = releases.engine_of(about), about.get("engine")
    adopted = named if isinstance(named, str) and named.startswith("/") else None
    patches = patch_states(os.path.join(home, "engines", engine)) if engine else None
    edits = file_edits(current)
    unit = unit_edits(current, shown)
    # Files that this user may not read say nothing, and so does the rest alone.
    drift = None if edits is None else edits + (unit or [])
    if drift is not None:
        drift += [f"patch {name} {state}" for name, state in (patches or {}).items() if state != "applied"]
        drift += ["engine gone"] if (engine and patches is None) or (adopted and not os.path.isdir(adopted)) else []
    deployed = {name: about.get(name) for name in ("kernel", "driver")}
    return {"drift": drift, "patches": patches, "engine": engine, "adopted": adopted, "deployed": deployed}


def document(path: str) -> dict[str, Any]:
    """A JSON object from a file; {} when it is none."""
    try:
        value = json.loads(read(path))
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def file_edits(current: str) -> list[str] | None:
    """The files of a release that are not what they were; None when it has no SHA256SUMS that we may read."""
    from hashlib import sha256

    sums = releases.sums(read(os.path.join(current, releases.SUMS)))
    if not sums:
        return None
    found = []
    for name, wanted in sums.items():
        try:
            with open(os.path.join(current, name), "rb") as file:
                if sha256(file.read()).hexdigest() != wanted:
                    found.append(name)
        except OSError as error:
            found.append(f"{name} gone" if isinstance(error, FileNotFoundError) else f"{name} unreadable")
    # The release's copy of the unit is nothing that runs: `unit` means the one that is installed.
    return [name for name in found if name.partition(" ")[0] != releases.UNIT]


def unit_edits(current: str, shown: dict[str, str]) -> list[str] | None:
    """How the installed unit differs from the rendered one; None when the release has not kept that."""
    wanted = read(os.path.join(current, releases.UNIT))
    if not wanted or not shown:
        return None
    path = shown.get("FragmentPath", "")
    if not path:
        return ["unit gone"]
    found = [] if read(path) == wanted else [other_unit(os.path.dirname(current), path)]
    # Drop-ins of the distribution's (/usr/lib) are for all units; somebody wrote these for this one.
    drop_ins = [one for one in shown.get("DropInPaths", "").split() if os.path.basename(path) in one]
    found += [f"unit drop-in {os.path.basename(one)}" for one in drop_ins]
    return found + (["unit not reloaded"] if shown.get("NeedDaemonReload") == "yes" else [])


def other_unit(folder: str, path: str) -> str:
    """What an installed unit is called that is not the current release's: that of another one, or edited."""
    data = raw(path)
    same = [n for n in releases.numbers(folder) if data and raw(os.path.join(folder, str(n), releases.UNIT)) == data]
    return f"unit of release {max(same)}" if same else "unit"


def patch_states(engine: str) -> dict[str, str] | None:
    """{patch: applied | taken out | edited | gone} of an engine's folder; None when there is no such engine."""
    from glob import escape, glob
    from hashlib import sha256

    noted = document(os.path.join(engine, "sparkops.json"))
    if not noted:
        return None
    found = {}
    for patch in noted.get("patches", ()):
        paths = glob(os.path.join(escape(engine), "lib", "python3*", "site-packages", escape(patch["file"])))
        data = [raw(path) for path in paths]
        if not data or data[0] is None:
            found[patch["name"]] = "gone"
        elif sha256(data[0]).hexdigest() == patch["sha256"]:
            found[patch["name"]] = "applied"
        else:
            found[patch["name"]] = "taken out" if data[0] == raw(paths[0] + ".orig") else "edited"
    return found


def raw(path: str) -> bytes | None:
    """A file's bytes; None when it can't be read."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None
