"""How files get into a checkpoint on a node: beside it first, under their final names once their hashes are checked."""

from __future__ import annotations

import os

from sparkops.node import files
from sparkops.node import weights_record as weights
from sparkops.node.api import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from sparkops.node.api import Node

# A file of at most so many bytes may have been edited by somebody: a tokenizer.json has 11 to 20 MB.
EDITABLE = 32 << 20
# What stays free on the disk, in bytes.
SPARE = 1 << 30


def prepare(path: str, good: Iterable[str]) -> str:
    """The staging folder, with links to those files of the checkpoint that are good already. Raises Failure."""
    folder = weights.staging(path)
    try:
        os.makedirs(folder, exist_ok=True)
        for name in good:
            beside = os.path.join(folder, weights.plain_name(name))
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
            f"{needed / 1e9:.1f} GB are to come to {os.path.dirname(folder)}, {SPARE / 1e9:.1f} GB must stay free "
            f"there, and {free / 1e9:.1f} GB are free: make room (sparkops weights prune), or set models_dir",
            needed=needed,
            free=free,
        )


def settle(
    path: str, names: Iterable[str], sums: dict[str, str], source: str, node: Node, revision: str = ""
) -> weights.Record:
    """Give the staged files, whose hashes were checked, their final names; others of the record go. Raises Failure.

    What sparkops did not make, and a small file that was edited since, stays beside as a backup.

    A kill at any moment leaves the old file or the new one under each final name, and the next run goes on.
    """
    folder = weights.staging(path)
    names = list(names)
    old = weights.Record.of(node.state_dir, path)
    full = {name: os.path.join(folder, name) for name in names}
    try:
        for name in names:
            sync(full[name])
        entries = {name: weights.entry(full[name], os.path.getsize(full[name]), sums[name]) for name in names}
        record = weights.Record(path, source, old.made if old else not os.path.exists(path), entries, revision)
        if os.path.isdir(path):
            replaced = [name for name in names if not same(full[name], os.path.join(path, name))]
            gone = [name for name in old.files if name not in entries] if old else []
            for name in [*replaced, *gone]:
                keep(path, name, old)
            # Before the record forgets them: an engine reads every *.safetensors file where there is no index.
            for name in gone:
                files.discard(os.path.join(path, name))
            record.write(node.state_dir)
            for name in names:
                final = os.path.join(path, name)
                os.makedirs(os.path.dirname(final), exist_ok=True)
                if not same(full[name], final):
                    os.rename(full[name], final)
            files.sync_folder(path)
            remove(folder)
        else:
            tidy(folder, set(names))
            record.write(node.state_dir)
            os.rename(folder, path)
        files.sync_folder(os.path.dirname(path))
    except OSError as error:
        raise files.refusal("write", str(error.filename or path), error) from error
    return record


def same(path: str, other: str) -> bool:
    """Whether both are the same file."""
    return os.path.exists(other) and os.path.samefile(path, other)


def keep(path: str, name: str, old: weights.Record | None) -> None:
    """A second name for a file that is about to lose its own, where sparkops did not make it as it is.

    A tensor file, or a large one, that was fetched and is another now was damaged, not edited: it goes.
    """
    import time

    final = os.path.join(path, name)
    if not os.path.lexists(final):
        return
    if old and old.made and not (editable(final) and old.edited(name)):
        return
    folder, base = os.path.split(final)
    others = [os.path.join(folder, one) for one in os.listdir(folder) if one.startswith(f"{base}.") and one[-1] == "~"]
    # A run that was killed may have kept it already.
    if not any(same(final, one) for one in others):
        os.link(final, f"{final}.{os.getpid()}.{time.strftime('%Y-%m-%d@%H:%M:%S')}~", follow_symlinks=False)


def editable(path: str) -> bool:
    """Whether a file is one that people edit."""
    return not path.endswith(".safetensors") and os.path.exists(path) and os.path.getsize(path) <= EDITABLE


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

    key = weights.job_key(path)
    joined = Job(node.state_dir, key).running()
    node.job(key, work, watch)
    return not joined


def note(line: str) -> None:
    """A line of the job's log."""
    os.write(1, f"{line}\n".encode("utf-8", "replace"))


def forget_jobs(path: str, node: Node) -> None:
    """Take away what jobs and offers have left that ended, or were killed, after their controller had gone."""
    from sparkops.node.jobs import Job
    from sparkops.node.offers import Offer

    for job in (Job(node.state_dir, weights.job_key(path)), Offer(path, node).job):
        if not job.running():
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

        now, done = time.monotonic(), min(weights.size_of(self.folder), total)
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
