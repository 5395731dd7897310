"""Read variables from a YAML file, or from the files of a folder, for this host.

Example:
    - name: What differs by distribution
      include_vars: "{{ ansible_distribution }}.yml"
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparkops.errors import InputError
from sparkops.node.api import Arguments
from sparkops.playbook.action import Acted
from sparkops.project.yaml import load

if TYPE_CHECKING:
    from sparkops.playbook.scope import Scope


class Args(Arguments):
    file: str | None = None  # beside the playbook, or in its vars/
    dir: str | None = None  # every file of a folder, in the order of their names
    name: str | None = None  # put all under this one variable
    extensions: list[str] = ["yaml", "yml", "json"]  # what files of `dir` must end with
    ignore_unknown_extensions: bool = False  # leave others out instead

    free_form = "file"


def act(args: Args, scope: Scope) -> Acted:
    """Result: ansible_included_var_files, and the variables under ansible_facts."""
    if (args.file is None) == (args.dir is None):
        raise InputError("include_vars needs either file or dir")
    values: dict[str, Any] = {}
    paths = [scope.find(args.file, "vars")] if args.file is not None else _inside(scope.find(args.dir, "vars"), args)
    for path in paths:
        values.update(mapping(path))
    included = {args.name: values} if args.name else values
    return Acted(
        result={"ansible_facts": included, "ansible_included_var_files": [str(path.absolute()) for path in paths]},
        included=included,
    )


def _inside(folder: Path, args: Args) -> list[Path]:
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder")
    endings = {f".{ending.lstrip('.')}" for ending in args.extensions}
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    for path in paths:
        if path.suffix not in endings and not args.ignore_unknown_extensions:
            raise InputError(f"{path} does not end with one of {', '.join(args.extensions)}")
    return [path for path in paths if path.suffix in endings]


def mapping(path: Path) -> dict[str, Any]:
    """The variables of a file. Raises InputError when it holds something else."""
    document = load(path)
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise InputError("a file of variables is a mapping", where=str(path))
    return document
