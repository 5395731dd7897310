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
# What stays free on the disk, in bytes.
SPARE = 1 << 30
# Files that are hashed at a time: one core does 2 GB/s, an NVMe disk more.
AT_A_TIME = 4
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
    """What is known of the checkpoint at `path`. made: sparkops put it there. source: where from, "" if not known."""

    def __init__(self, path: str, source: str, made: bool, entries: dict[str, dict[str, Any]]) -> None:
        self.path = path
        self.source = source
        self.made = made
        self.files = entries

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
            return cls(found["path"], found["source"], found["made"], found["files"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def write(self, state_dir: str) -> None:
        """Keep it."""
        from sparkops.node.jobs import make_folder

        folder = os.path.join(state_dir, "weights")
        make_folder(folder)
        document = {"path": self.path, "source": self.source, "made": self.made, "files": self.files}
        files.write(os.path.join(folder, f"{_short(self.path)}.json"), json.dumps(document).encode(), 0o600)

    def forget(self, state_dir: str) -> None:
        """There is no such checkpoint any more."""
        files.discard(os.path.join(state_dir, "weights", f"{_short(self.path)}.json"))

    def wanted(self) -> dict[str, dict[str, Any]]:
        """{name: {size, sha256}}: what any copy of it must be."""
        return {name: {key: one[key] for key in ("size", "sha256")} for name, one in self.files.items()}


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


def look(path: str, node: Node) -> dict[str, Any]:
    """How a checkpoint is here: present, problems (by file), files, bytes, source, staged (bytes of a transfer)."""
    record = Record.of(node.state_dir, path)
    known: dict[str, dict[str, Any]] = {}
    if record is not None and os.path.isdir(path):
        found, known = problems(record, node), record.files
    else:
        why = looks_whole(path)
        found = {"": why} if why else {}
    return {
        "path": path,
        "present": not found,
        "problems": found,
        "files": len(known),
        "bytes": sum(one["size"] for one in known.values()),
        "source": record.source if record else "",
        "staged": size_of(staging(path)),
    }


def said(looked: dict[str, Any]) -> str:
    """What `look` found, in a line."""
    found = looked["problems"].items()
    return "; ".join(f"{name}: {why}" if name else why for name, why in list(found)[:4]) or "here"


def adopt(path: str, node: Node) -> Record:
    """The record of a checkpoint; one that sparkops did not put there is hashed now, as it is. Raises Failure."""
    known = Record.of(node.state_dir, path)
    if known is not None:
        return known
    names = inside(path)
    sums = digests(path, names, node)
    full = {name: os.path.join(path, name) for name in names}
    entries = {name: entry(full[name], os.path.getsize(full[name]), sums[name]) for name in names}
    record = Record(path, "", False, entries)
    record.write(node.state_dir)
    return record


def inside(path: str) -> list[str]:
    """The files of a checkpoint, by their names within it; what begins with a dot is not its own."""
    found = []
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        full = (os.path.join(folder, name) for name in sorted(names) if not name.startswith("."))
        found += [os.path.relpath(name, path) for name in full if os.path.isfile(name)]
    return found


def size_of(folder: str) -> int:
    """The bytes of all files below a folder, as far as they have come; a client's own notes do not count."""
    total = 0
    for above, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != SCRATCH]
        for name in names:
            try:
                total += os.lstat(os.path.join(above, name)).st_size
            except OSError:
                continue
    return total


def prepare(path: str, good: Iterable[str]) -> str:
    """The staging folder, with links to those files of the checkpoint that are good already. Raises Failure."""
    folder = staging(path)
    try:
        os.makedirs(folder, exist_ok=True)
        for name in good:
            beside = os.path.join(folder, plain_name(name))
            os.makedirs(os.path.dirname(beside), exist_ok=True)
            there = os.path.join(path, name)
            if os.path.exists(beside) and os.path.samefile(there, beside):
                continue
            files.discard(beside)
            os.link(there, beside)
    except OSError as error:
        raise files.refusal("make", str(error.filename), error) from error
    return folder


def check_space(folder: str, needed: int) -> None:
    """Raises Failure when a disk has no room for so many bytes more."""
    disk = os.statvfs(folder)
    free = disk.f_bavail * disk.f_frsize
    if needed and needed + SPARE > free:
        raise Failure(
            f"{needed / 1e9:.1f} GB are to come to {os.path.dirname(folder)}, and {free / 1e9:.1f} GB are free there: "
            "make room (sparkops weights prune), or set models_dir",
            needed=needed,
            free=free,
        )


def settle(path: str, names: Iterable[str], sums: dict[str, str], source: str, node: Node) -> Record:
    """Give the staged files, whose hashes were checked, their final names. Raises Failure.

    A kill at any moment leaves the old file or the new one under each final name, and the next run goes on.
    """
    folder = staging(path)
    names = list(names)
    old = Record.of(node.state_dir, path)
    full = {name: os.path.join(folder, name) for name in names}
    try:
        for name in names:
            sync(full[name])
        entries = {name: entry(full[name], os.path.getsize(full[name]), sums[name]) for name in names}
        record = Record(path, source, old.made if old else not os.path.exists(path), entries)
        record.write(node.state_dir)
        if os.path.isdir(path):
            for name in names:
                final = os.path.join(path, name)
                os.makedirs(os.path.dirname(final), exist_ok=True)
                if not (os.path.exists(final) and os.path.samefile(full[name], final)):
                    os.rename(full[name], final)
            files.sync_folder(path)
            remove(folder)
        else:
            tidy(folder, set(names))
            os.rename(folder, path)
        files.sync_folder(os.path.dirname(path))
    except OSError as error:
        raise files.refusal("write", str(error.filename or path), error) from error
    return record


def sync(path: str) -> None:
    """A file's bytes to the disk."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def tidy(folder: str, wanted: set[str]) -> None:
    """Leave only these files in a staging folder: a client's notes go."""
    for above, folders, names in os.walk(folder, topdown=False):
        for name in names:
            full = os.path.join(above, name)
            if os.path.relpath(full, folder) not in wanted:
                os.unlink(full)
        for name in folders:
            full = os.path.join(above, name)
            if not os.listdir(full):
                os.rmdir(full)


def remove(folder: str) -> None:
    """Out of its name first, so that it is never there in part."""
    from shutil import rmtree

    if not os.path.lexists(folder):
        return
    gone = os.path.join(os.path.dirname(folder), f".sparkops-gone-{os.urandom(4).hex()}")
    os.rename(folder, gone)
    rmtree(gone)


def fetched(path: str, node: Node, work: Callable[[Node], dict[str, Any]], watch: Callable[[Node], None]) -> bool:
    """Do `work` as the checkpoint's job. False when one of another run was joined instead: look again."""
    from sparkops.node.jobs import Job

    key = job_key(path)
    joined = Job(node.state_dir, key).running()
    node.job(key, work, watch)
    return not joined


def forget_job(path: str, node: Node) -> None:
    """Take away what a job has left that ended after its controller had gone."""
    from sparkops.node.jobs import Job

    job = Job(node.state_dir, job_key(path))
    if job.result() is not None and not job.running():
        job.clear()


class Pace:
    """Tells how far a transfer is: bytes, bytes a second over the last few seconds, time left."""

    def __init__(self, folder: str, window: float = 10.0) -> None:
        self.folder = folder
        self.window = window
        self.seen: list[tuple[float, int]] = []

    def tell(self, node: Node, total: int) -> None:
        """Say it."""
        import time

        now, done = time.monotonic(), min(size_of(self.folder), total)
        self.seen = [one for one in self.seen if now - one[0] < self.window] + [(now, done)]
        node.progress(done, total, "bytes", pace(self.seen, total))


def pace(seen: list[tuple[float, int]], total: int) -> str:
    """`312 MB/s, 3 min left`, from (seconds, bytes) at both ends of a while; "" when that says nothing."""
    (first, before), (last, after) = seen[0], seen[-1]
    if last - first < 0.5 or after <= before:
        return ""
    rate = (after - before) / (last - first)
    left = (total - after) / rate
    return f"{rate / 1e6:.0f} MB/s, {f'{left / 60:.0f} min' if left >= 90 else f'{left:.0f} s'} left"
