"""Log lines as vLLM's processes write them, on stdout."""

from __future__ import annotations

import os
import time


def info(process: str, source: str, message: str) -> None:
    """A line of the engine: `process` is APIServer or EngineCore, `source` the file that speaks."""
    write(process, f"INFO {time.strftime('%m-%d %H:%M:%S')} [{source}] {message}")


def error(process: str, source: str, message: str) -> None:
    """An error's line."""
    write(process, f"ERROR {time.strftime('%m-%d %H:%M:%S')} [{source}] {message}")


def web(message: str) -> None:
    """A line of the web server."""
    write("APIServer", f"INFO:     {message}")


def write(process: str, text: str) -> None:
    """A line marked with the process it comes from. One write, so that threads do not mix their lines."""
    print(f"({process} pid={os.getpid()}) {text}\n", end="", flush=True)
