"""Many SSH servers in one process: servers.py COUNT FIRST_PORT FOLDER. It prints `ready` and ends with its stdin.

They are the process lab's own, so that they need no root and little memory; each starts real executors.
"""

from __future__ import annotations

import getpass
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import paramiko

from sparkops.lab.process.sshd import Login, Sshd
from tests.bench.nodes import NODE_PYTHON

HOSTS = """\
[nodes]
{hosts}
[nodes:vars]
ansible_host=127.0.0.1
ansible_user={user}
ansible_ssh_private_key_file={folder}/id_ecdsa
ansible_python_interpreter={python}
ansible_ssh_common_args='-o UserKnownHostsFile={folder}/known_hosts'
"""


def main(count: int, port: int, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    client, host = paramiko.ECDSAKey.generate(), paramiko.ECDSAKey.generate()
    (folder / "id_ecdsa").unlink(missing_ok=True)
    client.write_private_key_file(str(folder / "id_ecdsa"))
    user, lines, known = getpass.getuser(), [], []
    for number in range(count):
        root = folder / str(number)
        (root / "home/.config/systemd/user").mkdir(parents=True, exist_ok=True)
        lines.append(f"n{number} ansible_port={port + number} node_root={root} node_id={number}")
        known.append(f"[127.0.0.1]:{port + number} {host.get_name()} {host.get_base64()}")
        sshd = Sshd("127.0.0.1", port + number, host, _login(user, client, root / "home"))
        sshd.listen()
    (folder / "known_hosts").write_text("\n".join(known) + "\n")
    for some in (64, count):
        said = HOSTS.format(hosts="\n".join(lines[:some]), user=user, folder=folder, python=NODE_PYTHON)
        (folder / f"hosts.{some}.ini").write_text(said + "app_port=8000\nworkers=2\nregion=eu\n")
    print("ready", flush=True)
    sys.stdin.read()


def _login(user: str, key: paramiko.PKey, home: Path) -> Callable[[], Login]:
    def spawn(command: bytes) -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        env = {"HOME": str(home), "PATH": "/usr/local/bin:/usr/bin:/bin"}
        return subprocess.Popen(["sh", "-c", command], stdin=pipe, stdout=pipe, stderr=pipe, env=env, cwd=home)

    return lambda: Login(user, key, spawn, lambda: None)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
