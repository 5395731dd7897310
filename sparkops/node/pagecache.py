"""The page cache of files: how much is resident, giving it back, and who holds what stays.

Nothing here reads a file's content, so that measuring fills no cache. Sizes are bytes.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

PAGE = os.sysconf("SC_PAGE_SIZE")
# The same number on every architecture; Linux >= 6.5.
SYS_CACHESTAT = 451
# mincore wants a byte a page: a gigabyte at a time keeps the vector small.
WINDOW = 1 << 30
# File systems whose files keep their pages in another's: cachestat sees none of them, mincore does.
STACKED = ("overlay", "ecryptfs", "aufs")
PROT_NONE, MAP_SHARED = 0, 1


def regular_files(path: str) -> Iterator[str]:
    """The regular files of a tree (or the one file), each inode once; links in it are not followed.

    Raises OSError when `path` is not there or a folder can't be listed.
    """
    import stat

    top = os.path.realpath(path)
    if not stat.S_ISDIR(os.stat(top).st_mode):
        yield top
        return
    seen = set()
    for folder, _, names in os.walk(top, onerror=_fail):
        for name in names:
            file = os.path.join(folder, name)
            found = os.lstat(file)
            if stat.S_ISREG(found.st_mode) and (found.st_dev, found.st_ino) not in seen:
                seen.add((found.st_dev, found.st_ino))
                yield file


def _fail(error: OSError) -> None:
    raise error


def resident(path: str) -> int | None:
    """How many bytes of a file are in the page cache; None when the kernel does not tell the truth to this user."""
    fd = _open(path)
    try:
        measured = None if filesystem(fd) in STACKED else cachestat(fd)
        if measured is not None:
            return measured
        # To whom does not own a file nor may write it, mincore says that all of it is resident.
        if os.geteuid() not in (0, os.fstat(fd).st_uid) and not os.access(path, os.W_OK):
            return None
        return mincore(fd)
    finally:
        os.close(fd)


def _open(path: str) -> int:
    # NONBLOCK: a path that has become a pipe since it was listed must not hang us.
    return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)


def filesystem(fd: int) -> str:
    """The type of the file system that an open file was opened on, "" when it is not known."""
    with open(f"/proc/self/fdinfo/{fd}", encoding="utf-8") as file:
        mount = next((line.split()[1] for line in file if line.startswith("mnt_id:")), "")
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.split(None, 1)[0] == mount:
                return line.partition(" - ")[2].split()[0]
    return ""


def evict(path: str) -> None:
    """Drop a file's clean pages that no process maps; dirty ones are written first."""
    fd = _open(path)
    try:
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(fd)


def _libc() -> Any:
    import ctypes

    return ctypes.CDLL(None, use_errno=True)


def cachestat(fd: int) -> int | None:
    """cachestat(2) over the whole file, in bytes; None where the kernel (or a sandbox) does not offer it."""
    import ctypes
    import errno

    whole = (ctypes.c_uint64 * 2)(0, 0)
    counts = (ctypes.c_uint64 * 5)()
    if _libc().syscall(SYS_CACHESTAT, fd, ctypes.byref(whole), ctypes.byref(counts), 0) == 0:
        return int(counts[0]) * PAGE
    number = ctypes.get_errno()
    # EPERM: a sandbox, or a file that is neither ours nor writable. EOPNOTSUPP: a filesystem without a page cache.
    if number in (errno.ENOSYS, errno.EPERM, errno.EOPNOTSUPP):
        return None
    raise OSError(number, os.strerror(number))


def mincore(fd: int) -> int:
    """mincore(2) over the whole file, in bytes."""
    import ctypes

    libc = _libc()
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_int64]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
    size = os.fstat(fd).st_size
    pages = 0
    for offset in range(0, size, WINDOW):
        length = min(WINDOW, size - offset)
        address = libc.mmap(None, length, PROT_NONE, MAP_SHARED, fd, offset)
        if address in (None, ctypes.c_void_p(-1).value):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        vector = ctypes.create_string_buffer((length + PAGE - 1) // PAGE)
        failed = libc.mincore(address, length, vector)
        number = ctypes.get_errno()
        libc.munmap(address, length)
        if failed:
            raise OSError(number, os.strerror(number))
        pages += len(vector.raw) - vector.raw.count(b"\0")
    return pages * PAGE


def mappers(paths: list[str]) -> dict[str, list[dict[str, Any]]]:
    """For each path the processes that map it: {"pid": int, "command": str}; those of others are seen by root only."""
    found: dict[str, list[dict[str, Any]]] = {path: [] for path in paths}
    # A hard link maps under its other name, an overlay under its own device: either of the two will do.
    keys = {path: {path, _inode(path)} for path in paths}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/maps", "rb") as file:
                mapped = {key for line in file for key in _keys(line)}
        except OSError:
            # It has ended, or it is not ours to look at.
            continue
        for path in paths:
            if keys[path] & mapped:
                found[path].append({"pid": int(pid), "command": command(int(pid))})
    return found


def _inode(path: str) -> str:
    """A file's device and inode as /proc/PID/maps writes them."""
    found = os.lstat(path)
    return f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x} {found.st_ino}"


def _keys(line: bytes) -> list[str]:
    """The inode and the path of a line of /proc/PID/maps; the kernel writes only newlines in it as \\012."""
    words = line.rstrip(b"\n").split(None, 5)
    if len(words) < 6:
        return []
    return [os.fsdecode(words[3] + b" " + words[4]), os.fsdecode(words[5].replace(b"\\012", b"\n"))]


def command(pid: int) -> str:
    """A process's program and its words up to the first option: what follows may hold a secret."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = os.fsdecode(file.read()).split("\0")
        with open(f"/proc/{pid}/comm", "rb") as file:
            name = os.fsdecode(file.read()).strip()
    except OSError:
        return "?"
    shown = next((words[:at] for at, word in enumerate(words) if word.startswith("-")), words)
    return " ".join(shown[:4]).strip() or name
