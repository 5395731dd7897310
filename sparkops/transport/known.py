"""What known_hosts files say of one host. A file is read once; a key is parsed when its host is asked for.

paramiko parses every key of every line for every connection: 22 ms of CPU for 192 lines (FACTS §6).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from pathlib import Path

import paramiko
from paramiko.hostkeys import HostKeyEntry, InvalidHostKey

from sparkops.errors import HostKeyError

USER_FILE = "~/.ssh/known_hosts"
HASHED = "|1|"


class Lines:
    """The lines of a file by the names they are for; those with hashed names apart."""

    def __init__(self, text: str) -> None:
        self._named: dict[str, list[str]] = {}
        self._hashed: list[tuple[str, str]] = []
        for line in map(str.strip, text.splitlines()):
            if not line or line.startswith("#"):
                continue
            for name in line.replace("\t", " ").partition(" ")[0].split(","):
                if name.startswith(HASHED):
                    self._hashed.append((name, line))
                else:
                    self._named.setdefault(name, []).append(line)

    def of(self, name: str) -> Iterator[str]:
        """The lines for a name."""
        yield from self._named.get(name, ())
        for hashed, line in self._hashed:
            if paramiko.HostKeys.hash_host(name, hashed) == hashed:
                yield line


def entry_name(host: str, port: int) -> str:
    """The name under which a host stands in known_hosts."""
    return host if port == 22 else f"[{host}]:{port}"


def keys(files: Iterable[str], name: str, where: str) -> list[paramiko.PKey]:
    """The keys on record for a name, of any type, in the order of the files (none: the user's own). Raises HostKeyError
    for a line that is broken.
    """
    found: list[paramiko.PKey] = []
    for file in tuple(files) or (USER_FILE,):
        path = Path(file).expanduser()
        try:
            stat = path.stat()
        except OSError:
            continue
        for line in _read(path, stat.st_mtime_ns, stat.st_size).of(name):
            try:
                entry = HostKeyEntry.from_line(line)
            except InvalidHostKey:
                raise HostKeyError(f"{path} has a broken line for {name}: {line[:60]}", where=where) from None
            if entry is not None and entry.key is not None:
                found.append(entry.key)
    return found


@functools.lru_cache(maxsize=16)
def _read(path: Path, changed: int, size: int) -> Lines:  # noqa: ARG001
    return Lines(path.read_text(encoding="utf-8", errors="replace"))
