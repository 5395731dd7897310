"""Lookups of the controller's files: file, template, first_found, fileglob."""

from __future__ import annotations

import glob
import os.path
import re
from collections import ChainMap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jinja2.runtime import Context

from sparkops.errors import InputError
from sparkops.playbook.lookup_names import scope_of
from sparkops.project.yaml import read


def _places(context: Context, folder: str) -> list[Path]:
    """Where a relative name is looked for: in `folder` beside the playbook, and beside it."""
    return [place for base in scope_of(context).engine.bases for place in (base / folder, base)]


def _find(context: Context, folder: str, name: Any) -> Path:
    if not isinstance(name, str):
        raise InputError(f"the name of a file is a text, not {name!r}")
    path = Path(name).expanduser()
    tried = [path] if path.is_absolute() else [place / name for place in _places(context, folder)]
    for candidate in tried:
        if candidate.is_file():
            return candidate
    where = ", ".join(str(candidate.parent) for candidate in tried) or "no folder"
    raise InputError(f"there is no file {name!r}", hint=None if path.is_absolute() else f"looked in {where}")


def _file(context: Context, terms: list[Any], rstrip: bool = True, lstrip: bool = False) -> list[Any]:
    texts = [read(_find(context, "files", name)) for name in terms]
    texts = [text.rstrip() if rstrip else text for text in texts]
    return [text.lstrip() if lstrip else text for text in texts]


def _template(context: Context, terms: list[Any], template_vars: dict[str, Any] | None = None) -> list[Any]:
    scope = scope_of(context)
    names = ChainMap(template_vars or {}, scope.names)
    return [scope.engine.render_file(_find(context, "templates", name), names) for name in terms]


def _first_found(
    context: Context, terms: list[Any], files: Any = None, paths: Any = None, skip: bool = False, folder: str = ""
) -> list[Any]:
    """The path of the first file that exists; a term may be a mapping of files, paths and skip.

    `folder` is where `with_first_found` looks too: the action's own, "files" for a copy.
    """
    options = {"files": files, "paths": paths, "skip": skip}
    names = list(_candidates(terms or [options], options))
    for name in names:
        try:
            return [os.path.abspath(_find(context, folder, name))]  # noqa: PTH100  (a link stays one)
        except InputError:
            continue
    if options["skip"]:
        return []
    raise InputError(f"none of these files exists: {', '.join(names)}", hint="skip: true makes this no error")


def _candidates(terms: list[Any], options: dict[str, Any]) -> list[str]:
    """The names in order; as in Ansible, a mapping's options hold for the terms behind it too."""
    names: list[str] = []
    for term in terms:
        if isinstance(term, list):
            names += _candidates(term, options)
            continue
        if isinstance(term, Mapping):
            options.update({"files": None, "paths": None, "skip": False, **term})
        elif not isinstance(term, str):
            raise InputError(f"'first_found' takes names and mappings, not {term!r}")
        files = _listed([term] if isinstance(term, str) else options["files"], ",;")
        folders = _listed(options["paths"], ",:;")
        names += [os.path.join(folder, name) for folder in folders for name in files] if folders else files  # noqa: PTH118
    return names


def _listed(value: Any, marks: str) -> list[str]:
    if value is None:
        return []
    if not isinstance(value, str):
        return [part for item in value for part in _listed(item, marks)]
    return re.split(f"[{marks}]", value)


def _fileglob(context: Context, terms: list[Any]) -> list[Any]:
    found: list[str] = []
    for term in terms:
        folder, name = os.path.split(term)
        places = _places(context, "files")
        if folder:
            places = [place / folder for place in places if (place / folder).is_dir()][:1]
        for place in places:
            paths = glob.glob(os.path.join(glob.escape(str(place)), name))  # noqa: PTH118, PTH207  (dot files stay out)
            files = sorted(path for path in paths if os.path.isfile(path))  # noqa: PTH113
            if files:
                found += files
                break
    return found


LOOKUPS: dict[str, Callable[..., list[Any]]] = {
    "file": _file, "template": _template, "first_found": _first_found, "fileglob": _fileglob,
}  # fmt: skip
