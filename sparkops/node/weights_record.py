"""A checkpoint's files on a node: what they must be, whether they still are, and how new ones get their final names.

A record (state/weights/<name>-<hash>.json) has each file's size and sha256, and the mtime and inode that it had when it
was hashed: as long as those stay, nobody reads 70 GB again. What is being fetched lies in a folder beside the
checkpoint's, and gets the final name by a rename, after its hash was checked.
"""

from __future__ import annotations

import json
import os

from sparkops.node import files
from sparkops.node.api import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from sparkops.node.api import Node

INDEX = "model.safetensors.index.json"
# Files that are hashed at a time: one core does 2 GB/s, an NVMe disk more.
AT_A_TIME = 4
# What a hub gives when no revision is named.
DEFAULT_REVISION = "main"
# In a staging folder: what a hub's client keeps for itself.
SCRATCH = ".client"


def staging(path: str) -> str:
    """Where a checkpoint's files are until they are whole."""
    return os.path.join(os.path.dirname(path), f".sparkops-{os.path.basename(path)}.part")


def job_key(path: str) -> str:
    """One job at a time works on a checkpoint, whatever it does."""
    return f"weights-{_short(path)}"


def _short(path: str) -> str:
    from hashlib import sha256

    return f"{os.path.basename(path)}-{sha256(os.fsencode(path)).hexdigest()[:12]}"


def plain_name(name: str) -> str:
    """A file's name within a checkpoint. Raises Failure for one that leads out of it."""
    parts = name.split("/")
    if not name or "\0" in name or "\n" in name or any(part in ("", ".", "..") for part in parts):
        raise Failure(f"{name!r} is no name of a file in a checkpoint")
    return name


class Record:
    """What is known of the checkpoint at `path`. made: sparkops put it there. source: where from, "" if not known.

    revision: the words in which a hub was asked for the source's commit.
    """

    def __init__(
        self, path: str, source: str, made: bool, entries: dict[str, dict[str, Any]], revision: str = ""
    ) -> None:
        self.path = path
        self.source = source
        self.made = made
        self.files = entries
        self.revision = revision

    @classmethod
    def of(cls, state_dir: str, path: str) -> Record | None:
        """The record of a checkpoint; None: sparkops has never hashed it."""
        return cls.read(os.path.join(state_dir, "weights", f"{_short(path)}.json"))

    @classmethod
    def read(cls, file: str) -> Record | None:
        """A record's file."""
        try:
            with open(file, encoding="utf-8") as text:
                found = json.load(text)
            return cls(found["path"], found["source"], found["made"], found["files"], found.get("revision", ""))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def write(self, state_dir: str) -> None:
        """Keep it."""
        from sparkops.node.jobs import make_folder

        folder = os.path.join(state_dir, "weights")
        make_folder(folder)
        document = {
            **{"path": self.path, "source": self.source, "revision": self.revision},
            **{"made": self.made, "files": self.files},
        }
        files.write(os.path.join(folder, f"{_short(self.path)}.json"), json.dumps(document).encode(), 0o600)

    def forget(self, state_dir: str) -> None:
        """There is no such checkpoint any more."""
        files.discard(os.path.join(state_dir, "weights", f"{_short(self.path)}.json"))

    def wanted(self) -> dict[str, dict[str, Any]]:
        """{name: {size, sha256}}: what any copy of it must be."""
        return {name: {key: one[key] for key in ("size", "sha256")} for name, one in self.files.items()}

    def edited(self, name: str) -> bool:
        """Whether a file that is there is not as it was when it was hashed, or is not in the record at all."""
        found, one = os.stat(os.path.join(self.path, name)), self.files.get(name)
        return one is None or (found.st_mtime_ns, found.st_ino) != (one["mtime_ns"], one["inode"])


def records(state_dir: str) -> list[Record]:
    """All that there are, by path."""
    folder = os.path.join(state_dir, "weights")
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    found = [Record.read(os.path.join(folder, name)) for name in names if name.endswith(".json")]
    return [record for record in found if record is not None]


def entry(path: str, size: int, sha256: str) -> dict[str, Any]:
    """A record's line for a file whose bytes were hashed."""
    now = os.stat(path)
    return {"size": size, "sha256": sha256, "mtime_ns": now.st_mtime_ns, "inode": now.st_ino}


def problems(record: Record, node: Node) -> dict[str, str]:
    """{file: what is wrong with it}. A file whose mtime or inode has changed is hashed again; the record is kept up."""
    found: dict[str, str] = {}
    touched = []
    for name, one in record.files.items():
        try:
            now = os.stat(os.path.join(record.path, name))
        except OSError as error:
            found[name] = error.strerror or str(error)
            continue
        if now.st_size != one["size"]:
            found[name] = f"{now.st_size} of {one['size']} bytes"
        elif one.get("bad"):
            found[name] = "other bytes than it must have"
        elif (now.st_mtime_ns, now.st_ino) != (one["mtime_ns"], one["inode"]):
            touched.append(name)
    return {**found, **rehash(record, touched, node)} if touched else found


def rehash(record: Record, names: Iterable[str], node: Node) -> dict[str, str]:
    """{file: what is wrong with it} of these files, by reading them whole; the record remembers."""
    found: dict[str, str] = {}
    there = [name for name in names if os.path.isfile(os.path.join(record.path, name))]
    sums = digests(record.path, there, node)
    for name in names:
        one = record.files[name]
        if name not in sums:
            found[name] = "it is missing"
        elif sums[name] == one["sha256"]:
            record.files[name] = entry(os.path.join(record.path, name), one["size"], one["sha256"])
        else:
            found[name] = "other bytes than it must have"
            one["bad"] = True
    if not node.check:
        record.write(node.state_dir)
    return found


def digests(folder: str, names: Iterable[str], node: Node | None = None) -> dict[str, str]:
    """{file: sha256}. Raises Failure for a file that can't be read."""
    from concurrent.futures import ThreadPoolExecutor, as_completed

    names = list(names)
    sizes = {name: os.path.getsize(os.path.join(folder, name)) for name in names}
    total, done, found = sum(sizes.values()), 0, {}
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        # The largest first, so that none is left alone at the end.
        order = sorted(names, key=lambda name: -sizes[name])
        started = {pool.submit(files.sha256, os.path.join(folder, name)): name for name in order}
        try:
            for future in as_completed(started):
                name = started[future]
                found[name] = future.result()
                done += sizes[name]
                if node:
                    node.progress(done, total, "bytes", f"checked {name}")
        finally:
            # When the controller has gone, no file more is begun.
            for future in started:
                future.cancel()
    return found


def looks_whole(path: str) -> str:
    """Why a folder that sparkops knows nothing of is no checkpoint, judged by its names; "": it may be one."""
    try:
        names = set(os.listdir(path))
    except OSError as error:
        return f"{path}: {error.strerror}"
    if "config.json" not in names:
        return f"{path} has no config.json"
    if not any(name.endswith(".safetensors") for name in names):
        return f"{path} has no *.safetensors file"
    try:
        listed = json.loads(files.read(os.path.join(path, INDEX)))["weight_map"].values() if INDEX in names else ()
        missing = sorted(set(map(str, listed)) - names)
    except (ValueError, KeyError, TypeError, AttributeError):
        return f"{path}/{INDEX} is no index"
    return f"{path} lacks {missing[0]}" if missing else ""


def another(record: Record | None, repo: str, revision: str) -> tuple[str, str]:
    """(why it is to be fetched, what can only be said) of a checkpoint that is of another commit than is asked for.

    A commit or a tag is compared; of a hub's default branch any commit will do. "": nothing.
    """
    if not repo:
        return "", ""
    name, _, commit = record.source.rpartition("@") if record else ("", "", "")
    if record is None or not name:
        said = f"it was here before sparkops: whether it is {revision} of {repo} is not known"
        return "", said if revision not in ("", DEFAULT_REVISION) else ""
    if name != f"hf:{repo}":
        return "", f"it is {record.source}, not {repo}; prune it first, or set models_dir"
    if revision in ("", DEFAULT_REVISION, record.revision) or (is_commit(revision) and commit.startswith(revision)):
        return "", ""
    return f"it is commit {commit[:12]}, and {revision[:40]} is asked for", ""


def is_commit(revision: str) -> bool:
    """Whether a revision is a commit, or the first digits of one."""
    return 7 <= len(revision) <= 40 and not set(revision) - set("0123456789abcdef")


def look(path: str, node: Node, repo: str = "", revision: str = "") -> dict[str, Any]:
    """How a checkpoint is here: present, problems (by file), files, bytes, source, staged (of a transfer), warnings,
    and leads_out: a file that is a link to one elsewhere, as in a hub's cache; rsync's daemon serves no such.

    repo, revision: what it should be, "" for any.
    """
    record = Record.of(node.state_dir, path)
    known: dict[str, dict[str, Any]] = {}
    if record is not None and os.path.isdir(path):
        found, known = problems(record, node), record.files
    else:
        why = looks_whole(path)
        found = {"": why} if why else {}
    out = leads_out(path) if not found else ""
    why, warning = another(record, repo, revision) if not found else ("", "")
    found = {"": why} if why else found
    return {
        "path": path,
        "present": not found,
        "problems": found,
        "files": len(known),
        "bytes": sum(one["size"] for one in known.values()),
        "source": record.source if record else "",
        "staged": size_of(staging(path)),
        "leads_out": out,
        **({"warnings": [f"{path}: {warning}"]} if warning else {}),
    }


def leads_out(path: str) -> str:
    """The first file of a checkpoint that is a link to one outside of its folder; "": none."""
    top = os.path.realpath(path) + os.sep
    links = [name for name in inside(path) if os.path.islink(os.path.join(path, name))]
    return next((name for name in links if not os.path.realpath(os.path.join(path, name)).startswith(top)), "")


def said(looked: dict[str, Any]) -> str:
    """What `look` found, in a line."""
    found = looked["problems"].items()
    return "; ".join(f"{name}: {why}" if name else why for name, why in list(found)[:4]) or "here"


def adopt(path: str, node: Node, made: bool = False, source: str = "", like: str = "") -> Record:
    """The record of a checkpoint; one that sparkops did not fetch is hashed now, as it is. Raises Failure.

    like: another checkpoint, whose hashes hold for the files that are links to its own.
    """
    known = Record.of(node.state_dir, path)
    if known is not None:
        return known
    names = inside(path)
    sums = hashes_of_links(path, names, Record.of(node.state_dir, like) if like else None)
    sums.update(digests(path, [name for name in names if name not in sums], node))
    full = {name: os.path.join(path, name) for name in names}
    entries = {name: entry(full[name], os.path.getsize(full[name]), sums[name]) for name in names}
    record = Record(path, source, made, entries)
    record.write(node.state_dir)
    return record


def hashes_of_links(folder: str, names: Iterable[str], like: Record | None) -> dict[str, str]:
    """{file: sha256} of those files that are the same inodes, unchanged, as ones that `like` knows."""
    if like is None:
        return {}
    known = {(one["inode"], one["mtime_ns"], one["size"]): one for one in like.files.values() if not one.get("bad")}
    found = {}
    for name in names:
        now = os.stat(os.path.join(folder, name))
        one = known.get((now.st_ino, now.st_mtime_ns, now.st_size))
        if one:
            found[name] = str(one["sha256"])
    return found


def inside(path: str) -> list[str]:
    """The files of a checkpoint, by their names within it; what begins with a dot is not its own."""
    found = []
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        full = (os.path.join(folder, name) for name in sorted(names) if not name.startswith("."))
        found += [os.path.relpath(name, path) for name in full if os.path.isfile(name)]
    return found


def moved(folder: str) -> int:
    """A figure that grows with each byte that comes, also into a file that had its size from the start."""
    return size_of(folder) + size_of(folder, lambda found: found.st_blocks)


def size_of(folder: str, measure: Callable[[os.stat_result], int] = lambda found: found.st_size) -> int:
    """The bytes of all files below a folder, as far as they have come; a client's own notes do not count."""
    total = 0
    for above, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != SCRATCH]
        for name in names:
            try:
                total += measure(os.lstat(os.path.join(above, name)))
            except OSError:
                continue
    return total
