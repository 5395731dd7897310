"""What the nspawn driver asks of this machine: root, Linux, some programs; and how it runs them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from sparkops.errors import LabError

# Program -> the Debian package that has it.
PROGRAMS = {
    "systemd-nspawn": "systemd-container",
    "mmdebstrap": "mmdebstrap",
    "dpkg-deb": "dpkg",
    "ip": "iproute2",
    "nsenter": "util-linux",
    "setpriv": "util-linux",
}


def require() -> None:
    """LabError unless this machine can carry nspawn nodes."""
    if sys.platform != "linux":
        raise LabError("the nspawn driver needs Linux", hint="use: sparkops lab up --driver process")
    if os.geteuid() != 0:
        raise LabError(
            "the nspawn driver needs root: it makes network namespaces, mounts and containers",
            hint="run it as root, or use the driver that needs none: sparkops lab up --driver process",
        )
    if missing := [program for program in PROGRAMS if shutil.which(program) is None]:
        packages = sorted({PROGRAMS[program] for program in missing})
        raise LabError(
            f"the nspawn driver needs {', '.join(missing)}",
            hint=f"apt-get install {' '.join(packages)}; or use: sparkops lab up --driver process",
        )


def call(*argv: str | Path, cwd: Path | None = None, stdin: str = "") -> str:
    """Run a program to its end; its stdout. LabError with the end of its stderr when it fails."""
    done = subprocess.run(
        [str(word) for word in argv], cwd=cwd, input=stdin, capture_output=True, text=True, check=False
    )
    if done.returncode:
        tail = "\n".join((done.stderr.strip() or done.stdout.strip()).splitlines()[-20:])
        raise LabError(f"{argv[0]} failed with exit status {done.returncode}: {tail}")
    return done.stdout


def dying(argv: Sequence[str]) -> list[str]:
    """argv that runs in PID and mount namespaces of its own and dies, mounts and all, with what started it."""
    unshare = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    return ["setpriv", "--pdeathsig", "KILL", *unshare, "--", *argv]


def entering(netns: Path, argv: Sequence[str]) -> list[str]:
    """argv that runs in a network namespace."""
    return ["nsenter", f"--net={netns}", "--", *argv]
