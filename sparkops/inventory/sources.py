"""Reads one inventory source, whatever it is: a list of names, a directory, an executable, YAML, JSON or INI."""

from __future__ import annotations

import os
import re
from pathlib import Path

from sparkops.errors import InputError
from sparkops.inventory import documents
from sparkops.inventory.groups import Sources
from sparkops.inventory.ini_source import SECTION, read_ini
from sparkops.inventory.names import check_host_name, split_port
from sparkops.inventory.yaml_source import read_yaml
from sparkops.project import yaml
from sparkops.project.values import position

# Ansible's: what a directory of sources may hold beside sources.
_IGNORED_NAMES = ("host_vars", "group_vars", "vars_plugins")
_IGNORED_ENDINGS = (
    ".pyc", ".pyo", ".swp", ".bak", "~", ".rpm", ".md", ".txt", ".rst", ".orig", ".cfg", ".retry",
)  # fmt: skip
_YAML_ENDINGS = (".yml", ".yaml", ".json")
_YAML_LINE = re.compile(r"^(---|\s*[{-] |\s*[\w\"'.-]+:(\s|$))", re.MULTILINE)


def read_source(source: str, found: Sources) -> Path | None:
    """Adds a source to `found`, and gives the folder whose group_vars and host_vars count (a list has none).

    Raises InputError.
    """
    path = Path(os.path.expanduser(source))  # noqa: PTH111 (a user that is nowhere is no error yet)
    # os.path, since a long list is no path at all.
    if "," in source and not os.path.exists(path):  # noqa: PTH110
        _read_names(source, found)
        return None
    try:
        _read_path(path, source, found)
        return path if path.is_dir() else path.parent
    except (OSError, ValueError) as error:
        raise InputError(f"it cannot be read: {getattr(error, 'strerror', error)}", where=source) from None


def _read_names(source: str, found: Sources) -> None:
    for text in filter(None, map(str.strip, source.split(","))):
        name, port = split_port(text)
        try:
            check_host_name(name)
        except ValueError as error:
            raise InputError(str(error), where=f"-i {source}") from None
        if name not in found.hosts:
            found.host(name, source, port, f"-i {source}")
            found.add_host("ungrouped", name)


def _read_path(path: Path, source: str, found: Sources) -> None:
    if path.is_dir():
        for inside in sorted(path.iterdir()):
            name = inside.name
            if not (name.startswith(".") or name in _IGNORED_NAMES or name.endswith(_IGNORED_ENDINGS)):
                _read_path(inside, str(inside), found)
    elif not path.exists():
        hint = None if "/" in source or "." in source else f"a list of hosts ends with a comma: -i {source},"
        raise InputError("there is no such inventory", where=source, hint=hint)
    elif not (path.is_file() and os.access(path, os.X_OK) and _ran(path, found)):
        _read_text(path, found)


def _ran(path: Path, found: Sources) -> bool:
    from sparkops.inventory.script_source import read_script

    return read_script(path, found)


def _read_text(path: Path, found: Sources) -> None:
    """As Ansible: YAML if the name allows it and it is YAML, else INI."""
    name, file = str(path), os.path.abspath(path)  # noqa: PTH100 (absolute() keeps `..`)
    if path.suffix == ".toml":
        raise InputError("TOML inventories are not supported", where=name, hint="write it as YAML")
    text = yaml.read(path)
    not_yaml: InputError | None = None
    if not path.suffix or path.suffix in _YAML_ENDINGS:
        try:
            document = documents.loads(text, name)
        except InputError as error:
            not_yaml = error
        else:
            if isinstance(document, dict):
                try:
                    read_yaml(document, file, found)
                except InputError as error:
                    # JSON that is not YAML too has no positions.
                    error.where = error.where or name
                    raise
                return
            if document is not None:
                kind = "a list" if isinstance(document, list) else f"{document!r}"
                where = position(document) or name
                not_yaml = InputError(f"an inventory is a mapping of groups, not {kind}", where=where)
    try:
        read_ini(text, name, file, found)
    except InputError as error:
        raise not_yaml if not_yaml and _is_yaml(path, text) else error from None


def _is_yaml(path: Path, text: str) -> bool:
    """Whether whoever wrote a text that is neither YAML nor INI meant YAML."""
    if any(SECTION.fullmatch(line.strip()) for line in text.splitlines()):
        return False
    return path.suffix in _YAML_ENDINGS or bool(_YAML_LINE.search(text))
