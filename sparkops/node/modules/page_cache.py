"""Purge a tree's pages from the page cache.

A purge costs a full re-read of the files from disk the next time they are wanted.

Example:
    - name: Give the memory back
      page_cache:
        path: ~/models/hf
"""

from __future__ import annotations

import os

from sparkops.node.api import Arguments, Failure, Node, Outcome, Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

GIB = 1 << 30
# scope: all is ok, and drops nothing, while less than this could be dropped: some cache is always in use.
WORTH_IT = 256 << 20
DROP_CACHES = "/proc/sys/vm/drop_caches"


class Args(Arguments):
    """path: a file or a tree; links in it are not followed. scope: all drops the whole machine's cache instead
    (needs become: true), unless less than 256 MiB of it could be dropped.
    """

    path: Path | None = None
    scope: Literal["path", "all"] = "path"


def apply(args: Args, node: Node) -> Outcome:
    """ok when nothing was dropped. Result, in bytes: resident and resident_after (None: not measured), files,
    held [{path, resident, by: [{pid, command}]}] for what stays, mem_free and mem_available with their _after.
    """
    if args.scope == "all":
        return everything(node)
    if not args.path:
        raise Failure("page_cache needs path, a file or a tree (or scope: all)")
    try:
        return tree(args.path, node)
    except FileNotFoundError as error:
        raise Failure(f"{error.filename} does not exist", path=str(args.path)) from error
    except OSError as error:
        from sparkops.node import files

        raise files.refusal("look at", error.filename or args.path, error) from error


def tree(path: str, node: Node) -> Outcome:
    """Purge the files of a tree that have pages in the cache."""
    from sparkops.node import pagecache

    sizes = {file: pagecache.resident(file) for file in pagecache.regular_files(path)}
    before = total(sizes)
    said: dict[str, Any] = {"path": path, "files": len(sizes), "resident": before}
    wanted = [file for file, size in sizes.items() if size != 0]
    if not wanted:
        return Outcome.ok(f"nothing of {len(sizes)} files is resident", **said, **memory())
    if node.check:
        if before is None:
            return Outcome.unknown(unmeasured(), **said, **memory())
        return Outcome.changed(f"would purge {gib(before)} of {len(wanted)} files", **said, **memory())
    earlier = memory()
    done = 0
    for file in wanted:
        pagecache.evict(file)
        done += sizes[file] or 0
        node.progress(done, before, "bytes", os.path.basename(file))
    after = {file: pagecache.resident(file) for file in wanted}
    held = holders({file: size for file, size in after.items() if size})
    said.update(earlier, resident_after=total(after), held=held, **memory("_after"))
    return report(said, len(wanted))


def total(sizes: dict[str, int | None]) -> int | None:
    """The sum, or None when one of them could not be measured."""
    known = [size for size in sizes.values() if size is not None]
    return sum(known) if len(known) == len(sizes) else None


def unmeasured() -> str:
    """Why there is no figure."""
    return "not measured: the kernel tells only a file's owner and root how much of it is resident (become: true)"


def report(said: dict[str, Any], files: int) -> Outcome:
    """The outcome of a purge: its figures, and who holds what stays."""
    before, after = said["resident"], said["resident_after"]
    if before is None or after is None:
        line = f"{files} files purged, {unmeasured()}"
    else:
        line = f"purged {gib(before - after)} of {files} files, {gib(after)} stays"
    lines = [f"{line}; {moved(said)}", *map(held_line, said["held"])]
    # What stays for good (a server maps it) is no change the second time.
    if before is not None and after is not None and after >= before:
        return Outcome.ok("\n".join(lines), **said)
    return Outcome.changed("\n".join(lines), **said)


def holders(sizes: dict[str, int]) -> list[dict[str, Any]]:
    """The files that stay, each with the processes that map it."""
    if not sizes:
        return []
    from sparkops.node import pagecache

    by = pagecache.mappers(list(sizes))
    return [{"path": path, "resident": size, "by": by[path]} for path, size in sizes.items()]


def held_line(held: dict[str, Any]) -> str:
    """One file that stays, in words."""
    by = ", ".join(f"pid {one['pid']} ({one['command']})" for one in held["by"])
    reason = f"is mapped by {by}" if by else "stays: no process that this user may look at maps it"
    return f"{held['path']} ({gib(held['resident'])}) {reason}"


def memory(suffix: str = "") -> dict[str, Any]:
    """MemFree and MemAvailable now, in bytes. They differ by what the kernel could give back, the cache above all."""
    known = meminfo()
    return {f"mem_free{suffix}": known.get("MemFree", 0), f"mem_available{suffix}": known.get("MemAvailable", 0)}


def meminfo() -> dict[str, int]:
    """/proc/meminfo in bytes."""
    from sparkops.node import facts, hardware

    return hardware.meminfo(facts.read("/proc/meminfo"))


def moved(said: dict[str, Any]) -> str:
    """What became of MemFree and MemAvailable."""
    free, available = (f"{gib(said[name])} -> {gib(said[name + '_after'])}" for name in ("mem_free", "mem_available"))
    return f"MemFree {free}, MemAvailable {available}"


def gib(size: int) -> str:
    """A size for people."""
    return f"{size / GIB:.2f} GiB" if size >= GIB else f"{size / (1 << 20):.1f} MiB"


def droppable(known: dict[str, int]) -> int:
    """What drop_caches could take of the page cache: neither shared memory nor what processes map."""
    cached, buffers, shared, mapped = (known.get(name, 0) for name in ("Cached", "Buffers", "Shmem", "Mapped"))
    return max(0, cached + buffers - shared - mapped)


def everything(node: Node) -> Outcome:
    """Drop the machine's whole page cache."""
    if os.geteuid() != 0:
        raise Failure("page_cache with scope: all needs become: true (only root may write to drop_caches)")
    size = droppable(meminfo())
    said: dict[str, Any] = {"resident": size, "held": [], **memory()}
    if size < WORTH_IT:
        return Outcome.ok(f"only {gib(size)} could be dropped", **said)
    if node.check:
        return Outcome.changed(f"would drop up to {gib(size)}", **said)
    # drop_caches leaves dirty pages.
    os.sync()
    try:
        with open(DROP_CACHES, "w", encoding="utf-8") as file:
            file.write("3\n")
    except OSError as error:
        raise Failure(f"cannot write {DROP_CACHES}: {error.strerror}", **said) from error
    said.update(resident_after=droppable(meminfo()), **memory("_after"))
    return Outcome.changed(f"dropped {gib(max(0, size - said['resident_after']))}; {moved(said)}", **said)
