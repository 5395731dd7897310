"""Manage a file, folder or link and its mode and owner.

Example:
    - name: The engines have a home
      file:
        path: /opt/sparkops/engines
        state: directory
        mode: "0755"
"""

from __future__ import annotations

import os

from sparkops.node import files
from sparkops.node.api import Arguments, Failure, Mode, Node, Outcome, Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar, Literal


class Args(Arguments):
    """state: what is there now, else file (else directory with recurse), when it is left out.

    src: what a link points to (hard: the file that gets a second name). recurse: a directory's contents too.
    force: replace a file by a link, or link to what is not there yet. follow: work on what a link at `path` points to.
    """

    path: Path
    state: Literal["file", "directory", "absent", "touch", "link", "hard"] | None = None
    src: Path | None = None
    mode: Mode | None = None
    owner: str | None = None
    group: str | None = None
    recurse: bool = False
    force: bool = False
    follow: bool = True
    aliases: ClassVar[dict[str, str]] = {"dest": "path", "name": "path"}


def apply(args: Args, node: Node) -> Outcome:
    """Result: path, state, mode, owner, group, uid, gid, size as they are at the end (check mode: as they are now)."""
    if not args.path:
        raise Failure("path is empty; name the file or folder")
    place = os.path.abspath(args.path)
    now = files.path_info(place)["state"]
    state = args.state or (now if now != "absent" else "directory" if args.recurse else "file")
    if args.recurse and state != "directory":
        raise Failure("recurse goes with state: directory only", path=place)
    if state in ("link", "hard") and args.src is None and now != state:
        raise Failure(f"state: {state} needs src, what the link points to", path=place)
    path = os.path.realpath(place) if args.follow and state in ("file", "directory", "touch") else place
    try:
        changes = ACTIONS[state](path, args, node)
    except OSError as error:
        raise files.refusal("change", error.filename or path, error) from error
    if changes is None:
        return Outcome.unknown(f"{path} is not there yet", path=path, state="absent")
    result = {"path": path, **files.path_info(path)}
    if not changes:
        return Outcome.ok(**result)
    return Outcome.changed("; ".join(changes[:5]), files.changes_diff(path, changes), **result)


def attributes(path: str, args: Args, node: Node, follow: bool = True) -> list[str]:
    """Set what the arguments say of mode, owner and group."""
    return files.set_attributes(path, args.mode, args.owner, args.group, node.check, follow)


def a_file(path: str, args: Args, node: Node) -> list[str] | None:
    """The attributes of a file that must exist; None in check mode when it does not yet."""
    now = files.path_info(path, follow=True)["state"]
    if now == "absent" and node.check:
        return None
    if now == "absent":
        raise Failure(f"file ({path}) is absent, cannot continue; copy or template makes one", path=path, state=now)
    if now == "directory":
        raise Failure(f"{path} is a directory, not a file", path=path, state=now)
    return attributes(path, args, node)


def directory(path: str, args: Args, node: Node) -> list[str]:
    """A folder with its missing parents, each with the attributes."""
    missing = []
    at = path
    while not os.path.lexists(at):
        missing.append(at)
        at = os.path.dirname(at)
    if not os.path.isdir(at):
        raise Failure(f"{at} already exists as a {files.path_info(at)['state']}, not a directory", path=path)
    if not missing:
        changes = attributes(path, args, node)
        return changes + (tree(path, args, node, set()) if args.recurse else [])
    if node.check:
        return ["state absent -> directory"]
    for folder in reversed(missing):
        os.mkdir(folder)
        attributes(folder, args, node)
    return ["state absent -> directory"]


def tree(folder: str, args: Args, node: Node, seen: set[str]) -> list[str]:
    """The attributes of all that is below a folder and, with follow, of what its links point to, as in Ansible."""
    seen.add(os.path.realpath(folder))
    changes = []
    for here, folders, names in os.walk(folder, onerror=fail):
        for name in folders + names:
            path = os.path.join(here, name)
            changes += attributes(path, args, node, follow=False)
            target = os.path.realpath(path)
            if not (args.follow and os.path.islink(path) and os.path.exists(target)) or target in seen:
                continue
            changes += attributes(target, args, node)
            if os.path.isdir(target):
                changes += tree(target, args, node, seen)
    return changes


def fail(error: OSError) -> None:
    """os.walk would pass over a folder that it can't list."""
    raise error


def absent(path: str, _: Args, node: Node) -> list[str]:
    """Nothing at the path, neither link nor tree."""
    now = files.path_info(path)["state"]
    if now == "absent":
        return []
    if not node.check:
        if now == "directory":
            from shutil import rmtree

            rmtree(path)
        else:
            os.unlink(path)
    return [f"state {now} -> absent"]


def touch(path: str, args: Args, node: Node) -> list[str]:
    """An empty file, or new times for what is there: always a change."""
    now = files.path_info(path)["state"]
    if not node.check:
        if now == "absent":
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o666))
        os.utime(path)
        attributes(path, args, node)
    return [f"state {now} -> touch"]


def link(path: str, args: Args, node: Node) -> list[str] | None:
    """A symbolic link; another target replaces it by one rename."""
    now = files.path_info(path)["state"]
    target = os.readlink(path) if now == "link" else None
    source = target if args.src is None else str(args.src)
    assert source is not None
    place = os.path.join(os.path.dirname(path), source)
    if not os.path.lexists(place) and not args.force:
        if node.check:
            return None
        raise Failure(f"src {source} does not exist; force: true makes a link to it all the same", path=path)
    changes = [] if target == source else [f"target {target or now} -> {source}"]
    if changes:
        replaceable(path, now, "symlink", args.force)
    if changes and not node.check:
        swap(path, now, lambda temp: os.symlink(source, temp))
    if args.follow and os.path.exists(place):
        return changes + attributes(os.path.realpath(place), args, node)
    return changes + (attributes(path, args, node, follow=False) if os.path.lexists(path) else [])


def hard(path: str, args: Args, node: Node) -> list[str] | None:
    """A second name of the file `src`."""
    now = files.path_info(path)["state"]
    source = path if args.src is None else str(args.src)
    if not os.path.exists(source):
        if node.check:
            return None
        raise Failure(f"src {source} does not exist; a hard link needs it", path=path)
    same = now != "absent" and os.path.samestat(os.lstat(path), os.stat(source))
    if not same:
        replaceable(path, now, "hard link", args.force)
        if not node.check:
            swap(path, now, lambda temp: os.link(source, temp))
    return ([] if same else [f"state {now} -> hard"]) + attributes(source, args, node)


def replaceable(path: str, now: str, kind: str, force: bool) -> None:
    """Raise Failure unless what is at `path` may give way to a link."""
    if now in ("absent", "link"):
        return
    if not force:
        raise Failure(f"refusing to convert {path} from {now} to {kind}; force: true does it", path=path)
    if now == "directory" and os.listdir(path):
        raise Failure(f"the directory {path} is not empty, refusing to convert it to a {kind}", path=path)


def swap(path: str, now: str, make: Any) -> None:
    """Make a link beside and rename it into place."""
    folder = os.path.dirname(os.path.abspath(path))
    temp = os.path.join(folder, f".sparkops-{os.urandom(6).hex()}")
    make(temp)
    try:
        if now == "directory":
            os.rmdir(path)
        os.rename(temp, path)
        files.sync_folder(folder)
    finally:
        files.discard(temp)


ACTIONS: dict[str, Any] = {
    "file": a_file,
    "directory": directory,
    "absent": absent,
    "touch": touch,
    "link": link,
    "hard": hard,
}
