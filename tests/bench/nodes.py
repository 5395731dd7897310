"""N sshd on loopback, each with its own address, keys, configuration and home: the nodes of a measurement.

They run as whoever starts them, and are ended by the same object. Linux only: 127.0.1.0/24 needs no set-up there.
"""

from __future__ import annotations

import getpass
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.bench.measure import adopt_strays

PORT = 2222
NODE_PYTHON = "/usr/bin/python3"
REGIONS = ("eu", "us", "ap")
WRITTEN = ("etc", "var", "run", "current", "home/.config/systemd/user/app.service")
SSHD_CONFIG = """\
Port {port}
ListenAddress {address}
HostKey {folder}/host_ed25519
HostKey {folder}/host_ecdsa
PidFile none
AuthorizedKeysFile {client}/id_ed25519.pub
StrictModes no
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
UseDNS no
PrintMotd no
PrintLastLog no
MaxStartups 2000
MaxSessions 2000
LogLevel ERROR
SetEnv HOME={home}
Subsystem sftp internal-sftp
"""
CLIENT_CONFIG = """\
Host *
  User {user}
  Port {port}
  IdentityFile {client}/id_ed25519
  IdentitiesOnly yes
  IdentityAgent none
  UserKnownHostsFile {client}/known_hosts
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
  BatchMode yes
  PreferredAuthentications publickey
  GSSAPIAuthentication no
  KexAlgorithms curve25519-sha256
"""


@dataclass(frozen=True)
class Node:
    """One sshd: where it listens, what its sessions may write, and the variables that the workload reads."""

    number: int
    root: Path

    @property
    def name(self) -> str:
        return f"n{self.number}"

    @property
    def address(self) -> str:
        return f"127.0.1.{self.number}"

    @property
    def variables(self) -> dict[str, Any]:
        number = self.number
        return {
            "node_id": number,
            "node_root": str(self.root),
            "app_port": 8000 + number,
            "workers": 2 + number % 4,
            "region": REGIONS[number % 3],
        }


@dataclass
class Nodes:
    """`count` nodes under `base`; `with` starts and ends them."""

    base: Path
    count: int
    port: int = PORT
    _running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def client(self) -> Path:
        return self.base / "client"

    @property
    def config(self) -> Path:
        return self.client / "ssh_config"

    def nodes(self, count: int | None = None) -> list[Node]:
        """The first `count`."""
        return [Node(number, self.base / "nodes" / str(number)) for number in range(1, (count or self.count) + 1)]

    def __enter__(self) -> Nodes:
        self.client.mkdir(parents=True, exist_ok=True)
        key(self.client / "id_ed25519", "ed25519")
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)
        known = [line for node in self.nodes() for line in self._prepare(node)]
        (self.client / "known_hosts").write_text("\n".join(known) + "\n")
        aliases = "".join(f"Host {node.name}\n  HostName {node.address}\n" for node in self.nodes())
        said = CLIENT_CONFIG.format(user=getpass.getuser(), port=self.port, client=self.client)
        self.config.write_text(aliases + said)
        try:
            for node in self.nodes():
                self._start(node)
            for node in self.nodes():
                answering(node.address, self.port)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End the listeners that this object started; their sessions end with their clients."""
        for one in self._running:
            one.terminate()
        for one in self._running:
            one.wait()
        self._running.clear()

    def wipe(self, count: int | None = None) -> None:
        """Take away what the workload made: the next run is cold."""
        for node in self.nodes(count):
            for name in WRITTEN:
                path = node.root / name
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                else:
                    path.unlink(missing_ok=True)

    def inventory(self, count: int, port: int | None = None) -> Path:
        """An inventory of the first `count` nodes, as Ansible and sparkops read it."""
        file = self.base / f"hosts.{count}.{port or self.port}.ini"
        hosts = "".join(
            f"{node.name} ansible_host={node.address} "
            + " ".join(f"{name}={value}" for name, value in node.variables.items())
            + "\n"
            for node in self.nodes(count)
        )
        connection = {
            "ansible_port": port or self.port,
            "ansible_user": getpass.getuser(),
            "ansible_ssh_private_key_file": self.client / "id_ed25519",
            "ansible_python_interpreter": NODE_PYTHON,
            "ansible_ssh_common_args": f"'-o UserKnownHostsFile={self.client / 'known_hosts'}'",
        }
        file.write_text(f"[nodes]\n{hosts}[nodes:vars]\n" + "".join(f"{k}={v}\n" for k, v in connection.items()))
        return file

    def document(self) -> Path:
        """The same for peers that are scripts: a JSON list."""
        file = self.base / "hosts.json"
        user, secret = getpass.getuser(), str(self.client / "id_ed25519")
        known = str(self.client / "known_hosts")
        file.write_text(
            json.dumps([
                {
                    "name": node.name, "host": node.address, "port": self.port, "user": user, "key": secret,
                    "known_hosts": known, "vars": node.variables,
                }
                for node in self.nodes()
            ])
        )  # fmt: skip
        return file

    def cpu(self) -> float:
        """CPU seconds of the listeners and of the sessions that have ended."""
        ticks = 0
        for one in self._running:
            fields = Path(f"/proc/{one.pid}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(int(value) for value in fields[11:15])
        return ticks / os.sysconf("SC_CLK_TCK")

    def _prepare(self, node: Node) -> list[str]:
        """Make a node's keys and configuration; its lines of known_hosts."""
        (node.root / "home/.config/systemd/user").mkdir(parents=True, exist_ok=True)
        folder = self.base / "sshd" / str(node.number)
        folder.mkdir(parents=True, exist_ok=True)
        values = {"folder": folder, "client": self.client, "home": node.root / "home"}
        (folder / "sshd_config").write_text(SSHD_CONFIG.format(port=self.port, address=node.address, **values))
        public = [key(folder / f"host_{kind}", kind) for kind in ("ed25519", "ecdsa")]
        # A node that is reached through a delaying proxy has the same key under another port.
        return [f"[{node.address}]:{port} {text}" for port in (self.port, self.port + 1) for text in public]

    def _start(self, node: Node) -> None:
        folder = self.base / "sshd" / str(node.number)
        argv = [shutil.which("sshd") or "/usr/sbin/sshd", "-D", "-f", f"{folder}/sshd_config", "-E", f"{folder}/log"]
        # What a session leaves behind is its node's, and none of ours.
        quiet = {
            "preexec_fn": adopt_strays,
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.DEVNULL,
            "stderr": subprocess.DEVNULL,
        }
        self._running.append(subprocess.Popen(argv, **quiet))  # type: ignore[call-overload]


def key(file: Path, kind: str) -> str:
    """Make a key pair once; type and key of the public half."""
    if not file.exists():
        subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", "", "-f", str(file)], check=True)
    return " ".join(file.with_name(file.name + ".pub").read_text().split()[:2])


def answering(address: str, port: int, patience: float = 15.0) -> None:
    """Wait until something accepts connections there. Raises SystemExit."""
    end = time.monotonic() + patience
    while True:
        try:
            socket.create_connection((address, port), 1).close()
            return
        except OSError:
            if time.monotonic() > end:
                sys.exit(f"nothing answers on {address}:{port}")
            time.sleep(0.02)
