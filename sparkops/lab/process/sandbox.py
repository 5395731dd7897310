"""The folder and the environment that make up a simulated node."""

from __future__ import annotations

import json
import os
import pwd
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

# The entry that marks a node's processes, and where the stand-ins read what a node's /etc/sparkops-lab would say.
MARK = "SPARKOPS_LAB_ETC"
CLIENT = Path(__file__).with_name("client.py")
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
TOOLS = ("systemctl", "journalctl", "loginctl")
SUDO = """\
#!/bin/sh
echo "sudo: this node is simulated: its processes are those of the user who started the lab, there is no root" >&2
exit 1
"""


@dataclass(frozen=True)
class Sandbox:
    """A node's folder, DIR/nodes/NAME: home, bin, etc, run, tmp, journal and log within."""

    dir: Path

    @property
    def name(self) -> str:
        return self.dir.name

    @property
    def home(self) -> Path:
        return self.dir / "home"

    @property
    def bin(self) -> Path:
        return self.dir / "bin"

    @property
    def etc(self) -> Path:
        return self.dir / "etc"

    @property
    def run(self) -> Path:
        return self.dir / "run"

    @property
    def units(self) -> Path:
        """Where a user's own units are looked for first."""
        return self.home / ".config" / "systemd" / "user"

    @property
    def cut(self) -> Path:
        """There while the node's cable is pulled."""
        return self.dir / "cut"

    @property
    def host_key(self) -> Path:
        """The private key of its SSH server."""
        return self.dir / "host_key"

    @property
    def authorized_key(self) -> Path:
        """The line of the one key that may log in. Not in the home: it is not the product's to change."""
        return self.dir / "authorized_key"

    @property
    def mark(self) -> bytes:
        """The environment entry that this node's processes carry."""
        return os.fsencode(f"{MARK}={self.etc}")

    def environment(self) -> dict[str, str]:
        """The environment of a login; nothing of the caller's own."""
        user = login_name()
        return {
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "LOGNAME": user,
            "PATH": f"{self.bin}:{SYSTEM_PATH}",
            "SHELL": "/bin/sh",
            "TMPDIR": str(self.dir / "tmp"),
            "USER": user,
            "XDG_RUNTIME_DIR": str(self.run),
            MARK: str(self.etc),
        }

    def unit_environment(self) -> dict[str, str]:
        """What services get besides: what the lab tells the stand-in engine."""
        told: dict[str, str] = json.loads((self.etc / "environment.json").read_text())
        return told

    def build(self, programs: dict[str, str]) -> None:
        """Make the folders, and in bin: `programs` (text by name), this python, and stand-ins for what needs root
        or systemd."""
        for folder in ("home", "bin", "etc", "run", "tmp", "journal"):
            (self.dir / folder).mkdir(mode=0o700, parents=True, exist_ok=True)
        for tool in TOOLS:
            self.program(tool, client(self.run, tool))
        for name, text in {"sudo": SUDO, **programs}.items():
            self.program(name, text)
        # A venv's python is a link with a past; the interpreter it was made from stands by itself.
        interpreter = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
        (self.bin / "python3").symlink_to(interpreter)

    def program(self, name: str, text: str) -> None:
        """Write an executable."""
        path = self.bin / name
        path.write_text(text)
        path.chmod(0o755)


def login_name() -> str:
    """The name of this user, whatever the environment says; the number where it has none."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def client(run: Path, tool: str) -> str:
    """The script of a stand-in that asks the node's server process; -I -S spare most of python's start."""
    words = [sys.executable, "-I", "-S", str(CLIENT), str(run), tool]
    return f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n'
