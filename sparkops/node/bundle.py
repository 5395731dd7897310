"""What goes over the wire to start an executor: the loader command and the bytes for its stdin.

boot.py says what they are. Runs on the controller, but for argv.
"""

from __future__ import annotations

from sparkops.node.boot import LOADER, Modules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


# What a loader that announces itself says first.
HERE = b"."


class Start:
    """What an executor starts from. head: what the loader reads before the frames that are sent at once; rest: the
    sources, for a node that asks for them.
    """

    def __init__(self, sources: dict[str, str]) -> None:
        import hashlib
        import json

        self._text = json.dumps(sources).encode()
        self._boot = sources["sparkops.node.boot"].encode()
        self._key = hashlib.sha256(self._text).hexdigest()
        self._packed = b""
        self.head = b"%08d%b%b%012d" % (len(self._boot), self._boot, self._key.encode(), 0)

    @property
    def packed(self) -> bytes:
        """The sources, compressed when they are first needed: most nodes have byte-code of them."""
        if not self._packed:
            import zlib

            self._packed = zlib.compress(self._text, 6)
        return self._packed

    @property
    def rest(self) -> bytes:
        return b"%012d%b" % (len(self.packed), self.packed)

    def __bytes__(self) -> bytes:
        """All at once, for who cannot be asked."""
        return bytes(Modules(self._boot, self._key, self.packed))


def argv(python: str, announce: bool = False) -> list[str]:
    """The command that loads an executor: isolated, without site-packages, so that nothing on the node changes it.

    With `announce` it says HERE on stdout first and gives up stderr (nobody reads it any more).
    """
    head = 'import os; os.write(1, b"."); os.dup2(os.open(os.devnull, 1), 2)\n' if announce else ""
    # One line, for login shells that cannot quote a newline.
    return [python, "-I", "-S", "-c", f"exec({head + LOADER!r})"]


def start(modules: Iterable[str]) -> Start:
    """What starts an executor that has the named modules."""
    import os

    folder = os.path.dirname(__file__)
    names = [name[:-3] for name in sorted(os.listdir(folder)) if name.endswith(".py")]
    wanted = [f"modules/{name}" for name in sorted(set(modules))] + ["modules/__init__"] + names
    sources = {"sparkops": ""}
    for name in wanted:
        with open(os.path.join(folder, name + ".py"), encoding="utf-8") as file:
            dotted = "sparkops.node." + name.replace("/", ".")
            sources[dotted[: -len(".__init__")] if dotted.endswith(".__init__") else dotted] = file.read()
    return Start(sources)


def preamble(modules: Iterable[str]) -> bytes:
    """The same as the bytes that come before the first frame; the node keeps nothing of them."""
    return bytes(start(modules))
