"""What a task names on the controller: files to copy, templates, declared patches. Found and read once a run."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from sparkops.errors import InputError, Position

INLINE = 64 * 1024
# Folders in one another.
DEEPEST = 100


class Files:
    """Where tasks' files are. folders: of kind "files" or "templates", in order; patch: a patch's data by name."""

    def __init__(
        self,
        folders: Callable[[str], Sequence[Path]],
        patch: Callable[[str], Mapping[str, Any]],
    ) -> None:
        self._folders = folders
        self._patch = patch
        self._sources: dict[Path, dict[str, Any]] = {}
        self._by_digest: dict[str, Path] = {}
        self._found: dict[tuple[str, str, str], Path] = {}

    def source(self, name: str, file: str, where: Position | None, folders: bool = False) -> dict[str, Any]:
        """A file's name, sha256, size, and its bytes (base64) when it is small; with `folders` also what is in a
        folder. Raises InputError.
        """
        path = self.find(name, "files", file, where)
        if path.is_dir():
            if not folders:
                raise InputError(f"{name} is a folder, and a file is wanted", where=where)
            return {"name": "" if name.endswith("/") else path.name, **self._tree(path, where)}
        if path not in self._sources:
            self._sources[path] = _read(path, where)
            self._by_digest[self._sources[path]["digest"]] = path
        return self._sources[path]

    def _tree(self, folder: Path, where: Position | None) -> dict[str, Any]:
        """What is in a folder; links are followed, as Ansible does."""
        if folder not in self._sources:
            names: list[str] = []
            found: list[tuple[str, int, str]] = []
            for root, inner, files in os.walk(folder, followlinks=True):
                if len(Path(root).parts) - len(folder.parts) > DEEPEST:
                    raise InputError(f"{folder} has a link that leads back into it", where=where)
                inner.sort()
                here = os.path.relpath(root, folder)
                before = "" if here == "." else f"{here}/"
                names += [before + one for one in inner]
                for one in sorted(files):
                    path = Path(root, one)
                    read = _read(path, where, inline=False)
                    self._by_digest[read["digest"]] = path
                    found.append((before + one, read["size"], read["digest"]))
            tree = {"folders": names, "files": found}
            size = sum(size for _, size, _ in found)
            self._sources[folder] = {"digest": "", "size": size, "inline": None, "tree": tree}
        return self._sources[folder]

    def find(self, name: str, kind: str, file: str, where: Position | None) -> Path:
        """What a task in `file` means by a name: beside that file, in its folder `kind`, or where the project and
        the shipped data have that kind. Raises InputError.
        """
        known = self._found.get((name, kind, file))
        if known is not None and known.exists():
            return known
        given = Path(name).expanduser()
        beside = Path(file).parent
        tried = [given] if given.is_absolute() else [beside / kind / given, beside / given]
        if beside.name == "tasks" and not given.is_absolute():
            tried += [beside.parent / kind / given, beside.parent / given]
        tried += [] if given.is_absolute() else [folder / given for folder in self._folders(kind)]
        for path in tried:
            if path.exists():
                self._found[name, kind, file] = path
                return path
        looked = ", ".join(dict.fromkeys(str(path.parent) for path in tried))
        raise InputError(f"there is no file {name}", where=where, hint=f"looked in {looked}")

    def patch(self, name: str) -> Mapping[str, Any]:
        """A declared patch's data. Raises InputError."""
        return self._patch(name)

    def by_digest(self, digest: str) -> Path:
        """The file that a node asks for."""
        return self._by_digest[digest]


def _read(path: Path, where: Position | None, inline: bool = True) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            digest = _digest(file)
            size = file.tell()
            file.seek(0)
            text = base64.b64encode(file.read()).decode() if inline and size <= INLINE else None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}", where=where) from None
    return {"name": path.name, "digest": digest, "size": size, "inline": text}


def _digest(file: BinaryIO) -> str:
    seen = hashlib.sha256()
    while piece := file.read(1 << 20):
        seen.update(piece)
    return seen.hexdigest()
