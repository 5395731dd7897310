"""The first thing that runs on a node: finds the executor's byte-code or asks for its sources, and starts it.

`python3 -c LOADER` reads from stdin, each after its length in digits: this file's text; the key of the sources (64
digits of their sha256); the sources, a zlib-compressed JSON object {module: source}, or nothing; the frames that were
sent at once. Without sources the byte-code of an earlier run is used; when there is none, NEED is said on stdout and
the sources come behind those frames. A child of another user gets byte-code in their place.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, ModuleType
    from typing import Any

# Reads this file's text after eight digits. Works unbuffered: what follows on stdin must not be swallowed.
LOADER = """\
import os
def read(n):
    b = b""
    while len(b) < n:
        c = os.read(0, n - len(b))
        if not c: raise SystemExit(0)
        b += c
    return b
text = read(int(read(8)))
exec(compile(text, "<sparkops boot>", "exec"), {"__name__": "sparkops_boot", "read": read, "text": text})
"""
NEED = b"?"
# Bytes of checksum before kept byte-code.
CHECKSUM = 4


class Modules:
    """A finder and loader for the executor's modules; as bytes, what a child of another user starts from."""

    def __init__(self, text: bytes, key: str, packed: bytes) -> None:
        self.text = text
        self.key = key
        self.packed = packed
        self.codes: dict[str, bytes] = {}
        self.sources: dict[str, str] = {}
        if packed[:1] == b"x":
            import json
            import zlib

            self.sources = json.loads(zlib.decompress(packed))
        else:
            import marshal

            self.codes = marshal.loads(packed)
        self.packages = {name.rpartition(".")[0] for name in self.names()}

    def names(self) -> list[str]:
        """All there are."""
        return list(self.sources or self.codes)

    def code(self, name: str) -> CodeType:
        """A module's code."""
        if self.sources:
            return compile(self.sources[name], "<" + name + ">", "exec")
        import marshal

        found: CodeType = marshal.loads(self.codes[name])
        return found

    def __bytes__(self) -> bytes:
        sizes = (len(self.text), self.text, self.key.encode(), len(self.packed), self.packed)
        return b"%08d%b%b%012d%b%012d" % (*sizes, 0)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:  # noqa: ARG002
        """importlib's protocol; the spec class is borrowed, as importing importlib costs 10 ms."""
        if name not in self.codes and name not in self.sources:
            return None
        kind: Any = type(sys.__spec__)
        return kind(name, self, origin="<" + name + ">", is_package=name in self.packages)

    def create_module(self, spec: Any) -> None:
        """Python makes the module itself."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the module's code in it."""
        exec(self.code(module.__name__), module.__dict__)


def folder() -> str:
    """Where byte-code is kept: a folder of the login user's own."""
    import os

    return os.path.expanduser("~/.local/share/sparkops/executor")


def file_name(key: str) -> str:
    """The sources' and the interpreter's: another version of Python does not read it."""
    return f"{key}.{sys.implementation.cache_tag}-{sys.hexversion:x}"


def kept(key: str) -> bytes:
    """The byte-code of these sources from an earlier run, or nothing. Only what this user alone can have written, and
    what is whole, is taken.
    """
    import os

    place = folder()
    try:
        for path in (place, os.path.join(place, file_name(key))):
            found = os.lstat(path)
            if found.st_uid != os.geteuid() or found.st_mode & 0o077:
                return b""
        with open(path, "rb") as file:
            digest, data = file.read(CHECKSUM), file.read()
    except OSError:
        return b""
    return data if checksum(data) == digest else b""


def checksum(data: bytes) -> bytes:
    """4 bytes that tell whether byte-code is what was written; who wrote it is told by its owner and mode."""
    import binascii

    return binascii.crc32(data).to_bytes(CHECKSUM, "big")


def sha256(data: bytes = b"") -> Any:
    """hashlib's object, by what Python has built in: hashlib loads OpenSSL, which takes 2 ms."""
    try:
        # To look for one that is not there takes 0.1 ms.
        return __import__("_sha2" if sys.version_info >= (3, 12) else "_sha256").sha256(data)
    except ImportError:
        pass
    import hashlib

    return hashlib.sha256(data)


def start(read: Callable[[int], bytes], text: bytes) -> None:
    """Make the executor's modules importable and run it until its stdin ends."""
    import os

    key = read(64).decode()
    packed, flight = read(int(read(12))), read(int(read(12)))
    asked = False
    if not packed:
        packed = kept(key)
        if not packed:
            os.write(1, NEED)
            packed, asked = read(int(read(12))), True
    modules = Modules(text, key, packed)
    sys.meta_path.insert(0, modules)
    from sparkops.node.executor import main

    main(modules, flight, asked)
    # Nothing is left to do, and taking the interpreter down takes 2 ms.
    os._exit(0)


if __name__ == "sparkops_boot":
    start(globals()["read"], globals()["text"])
