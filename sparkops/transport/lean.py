"""Imports paramiko without invoke: its 70 ms are wasted unless ssh_config has `Match exec`."""

from __future__ import annotations

import re
import sys
import threading
from pathlib import Path

# The user's comes first: the first word wins.
SSH_CONFIG = ("~/.ssh/config", "/etc/ssh/ssh_config")
_loading = threading.Lock()


def load() -> None:
    """Import paramiko. It asks for invoke, does without where there is none, and runs the programs of `Match exec` by
    it: with such words it gets it.
    """
    with _loading:
        known = "paramiko" in sys.modules or "invoke" in sys.modules
        if known or any(re.search(r"(?i)\bexec\b", text) for text in config_texts()):
            return
        # How Python is told that there is no such module; who asks for it later gets it.
        sys.modules["invoke"] = None  # type: ignore[assignment]
        try:
            import paramiko  # noqa: F401
        finally:
            del sys.modules["invoke"]


def config_texts() -> tuple[str, ...]:
    """The texts of the ssh_config files."""
    paths = [Path(file).expanduser() for file in SSH_CONFIG]
    return tuple(path.read_text(encoding="utf-8") if path.is_file() else "" for path in paths)
