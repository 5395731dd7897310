"""The peers, each in a venv of its own, made once and kept under the cache folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

# ansible-core as our tests have it; mitogen goes with it. matplotlib is none: it draws the plot.
PEERS = {
    "ansible": ("ansible-core==2.19.14",),
    "mitogen": ("ansible-core==2.19.14", "mitogen"),
    "pyinfra": ("pyinfra",),
    "fabric": ("fabric", "jinja2"),
}
DONE = ".ready"


def bin_of(peer: str, cache: Path) -> Path:
    """The folder of a peer's programs; installed first if need be. Raises CalledProcessError."""
    venv = cache / "venvs" / peer
    mark = venv / DONE
    wanted = " ".join(PEERS[peer])
    if not mark.exists() or mark.read_text() != wanted:
        print(f"installing {wanted} ...", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(venv)], check=True)
        pip = [str(venv / "bin/pip"), "install", "--quiet", "--disable-pip-version-check", *PEERS[peer]]
        subprocess.run(pip, check=True, stderr=subprocess.DEVNULL)
        mark.write_text(wanted)
    return venv / "bin"


def versions(peer: str, cache: Path) -> list[str]:
    """What is installed there of what was asked for, with versions."""
    pip = [str(bin_of(peer, cache) / "pip"), "freeze", "--disable-pip-version-check"]
    said = subprocess.run(pip, check=True, capture_output=True, text=True).stdout.split()
    names = {one.partition("==")[0] for one in PEERS[peer]}
    return [line for line in said if line.partition("==")[0] in names]
