"""The first thing that runs on a node: takes the executor's sources from stdin, keeps them importable, starts it.

The controller sends this file's text to `python3 -c LOADER`, then a zlib-compressed JSON object {module: source}.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

# Reads eight digits and that many bytes, twice: this file's text, then (by start) the sources. Works unbuffered,
# since the frames that follow on stdin must not be swallowed.
LOADER = """\
import os
def read(n):
    b = b""
    while len(b) < n:
        c = os.read(0, n - len(b))
        if not c: raise SystemExit(0)
        b += c
    return b
exec(compile(read(int(read(8))), "<sparkops boot>", "exec"), {"__name__": "sparkops_boot", "read": read})
"""


class Sources:
    """A finder and loader for the modules that came over the wire."""

    def __init__(self, sources: dict[str, str]) -> None:
        self.sources = sources

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:  # noqa: ARG002
        """importlib's protocol; the spec class is borrowed, as importing importlib costs 10 ms."""
        if name not in self.sources:
            return None
        package = any(other.startswith(name + ".") for other in self.sources)
        return type(sys.__spec__)(name, self, origin="<" + name + ">", is_package=package)  # type: ignore[arg-type]

    def create_module(self, spec: Any) -> None:
        """Python makes the module itself."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the module's source in it."""
        exec(compile(self.sources[module.__name__], "<" + module.__name__ + ">", "exec"), module.__dict__)


def start(read: Callable[[int], bytes]) -> None:
    """Read the sources, make them importable, run the executor until its stdin ends."""
    import json
    import zlib

    packed = read(int(read(8)))
    sources = json.loads(zlib.decompress(packed))
    sys.meta_path.insert(0, Sources(sources))
    from sparkops.node.bundle import join
    from sparkops.node.executor import main

    main(join(sources["sparkops.node.boot"].encode(), packed))


if __name__ == "sparkops_boot":
    start(globals()["read"])
