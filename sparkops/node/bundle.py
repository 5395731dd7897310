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


class Preamble(bytes):
    """What the loader reads before the first frame, with the sources. head: without them; rest: what it then asks for
    when it has no byte-code of them.
    """

    head: bytes
    rest: bytes


def argv(python: str, announce: bool = False) -> list[str]:
    """The command that loads an executor: isolated, without site-packages, so that nothing on the node changes it.

    With `announce` it says HERE on stdout first and gives up stderr (nobody reads it any more).
    """
    head = 'import os; os.write(1, b"."); os.dup2(os.open(os.devnull, 1), 2)\n' if announce else ""
    # One line, for login shells that cannot quote a newline.
    return [python, "-I", "-S", "-c", f"exec({head + LOADER!r})"]


def preamble(modules: Iterable[str]) -> Preamble:
    """What starts an executor with the named modules."""
    import hashlib
    import json
    import os
    import zlib

    folder = os.path.dirname(__file__)
    names = [name[:-3] for name in sorted(os.listdir(folder)) if name.endswith(".py")]
    wanted = [f"modules/{name}" for name in sorted(set(modules))] + ["modules/__init__"] + names
    sources = {"sparkops": ""}
    for name in wanted:
        with open(os.path.join(folder, name + ".py"), encoding="utf-8") as file:
            dotted = "sparkops.node." + name.replace("/", ".")
            sources[dotted[: -len(".__init__")] if dotted.endswith(".__init__") else dotted] = file.read()
    text = json.dumps(sources).encode()
    boot, packed = sources["sparkops.node.boot"].encode(), zlib.compress(text, 6)
    key = hashlib.sha256(text).hexdigest()
    found = Preamble(bytes(Modules(boot, key, packed)))
    found.head = b"%08d%b%b%012d" % (len(boot), boot, key.encode(), 0)
    found.rest = b"%012d%b" % (len(packed), packed)
    return found
