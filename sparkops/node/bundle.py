"""What goes over the wire to start an executor: the loader command and the bytes for its stdin.

Used by the controller (sources from the package) and by the executor itself for a child of another user (the bytes
it came in).
"""

from __future__ import annotations

from sparkops.node.boot import LOADER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


# What a loader that announces itself says first.
HERE = b"."


def argv(python: str, announce: bool = False) -> list[str]:
    """The command that loads an executor: isolated, without site-packages, so that nothing on the node changes it.

    With `announce` it says HERE on stdout first and gives up stderr (nobody reads it any more).
    """
    head = 'import os; os.write(1, b"."); os.dup2(os.open(os.devnull, 1), 2)\n' if announce else ""
    # One line, for login shells that cannot quote a newline.
    return [python, "-I", "-S", "-c", f"exec({head + LOADER!r})"]


def preamble(modules: Iterable[str]) -> bytes:
    """What the loader reads from stdin before the first frame: the executor with the named modules.

    Runs on the controller; an executor hands on the bytes that it came in.
    """
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
    return join(sources["sparkops.node.boot"].encode(), zlib.compress(json.dumps(sources).encode(), 6))


def join(boot: bytes, packed: bytes) -> bytes:
    """The two parts that the loader reads, each with its length in eight digits before it."""
    return b"%08d%b%08d%b" % (len(boot), boot, len(packed), packed)
