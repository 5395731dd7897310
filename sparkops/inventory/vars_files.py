"""group_vars and host_vars: which files give a group or a host its variables."""

from __future__ import annotations

import errno
from pathlib import Path

from sparkops.errors import InputError
from sparkops.inventory import documents
from sparkops.inventory.groups import Layer
from sparkops.project.values import Mapping, key_position, position

ENDINGS = (".yml", ".yaml", ".json")


class VarsFolder:
    """The group_vars and host_vars beside one inventory source (or playbook)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._kinds = {kind: (folder / kind).is_dir() for kind in ("group_vars", "host_vars")}

    def layers(self, kind: str, name: str) -> list[Layer]:
        """Variables of a group (kind "group_vars") or a host ("host_vars"), weaker files first. Raises InputError."""
        if not self._kinds[kind]:
            return []
        return [read_vars(path, f"{kind} {name}") for path in find(self.folder / kind, name)]


def find(folder: Path, name: str) -> list[Path]:
    """Ansible's choice: NAME (a file, or a folder of files), else the first of NAME.yml, .yaml, .json that exists."""
    for ending in ("", *ENDINGS):
        path = folder / f"{name}{ending}"
        try:
            if path.is_dir():
                return _inside(path)
            if path.exists():
                return [path]
        except OSError as error:
            if error.errno != errno.ENAMETOOLONG:
                raise InputError(f"it cannot be read: {error.strerror}", where=str(path)) from None
    return []


def _inside(folder: Path) -> list[Path]:
    """Files of a folder and its subfolders, by name; hidden ones, backups and other endings are left out."""
    found: list[Path] = []
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name.endswith("~"):
            continue
        if path.is_dir() and not path.suffix:
            found += _inside(path)
        elif path.is_file() and path.suffix in ("", *ENDINGS):
            found.append(path)
    return found


def read_vars(path: Path, name: str) -> Layer:
    """The variables of a file, as a layer called `name`. Raises InputError."""
    document = documents.load(path)
    if not document:
        return Layer(name)
    if not isinstance(document, dict):
        raise InputError("a file of variables is a mapping", where=position(document) or str(path))
    for key in document:
        if not isinstance(key, str):
            raise InputError(
                f"a variable's name is a text, not {key!r}",
                where=key_position(document, key) or str(path),
                hint="quote it",
            )
    places = document.values_at if isinstance(document, Mapping) else dict.fromkeys(document, str(path))
    return Layer(name, dict(document), dict(places))
