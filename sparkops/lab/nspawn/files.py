"""What makes a node of the shared base: its name, keys, login, sudo rule, driver version, checkpoints."""

from __future__ import annotations

import os
import shutil
import uuid
from dataclasses import dataclass
from pathlib import Path

from sparkops.lab.lab import new_key
from sparkops.lab.nspawn import cache
from sparkops.lab.nspawn.host import call

# The login user: the first ordinary one, as on a Spark.
UID = 1000
DRIVER_VERSION = "580.95.05"
# /proc/meminfo of an idle Spark: 121.7 GiB visible, 118 available (the machine that carries the lab has less).
MEMINFO = """\
MemTotal:       127611696 kB
MemFree:        122683392 kB
MemAvailable:   123731968 kB
Buffers:          131072 kB
Cached:          1048576 kB
SwapCached:            0 kB
Mapped:           262144 kB
Shmem:             16384 kB
SReclaimable:     131072 kB
SwapTotal:             0 kB
SwapFree:              0 kB
"""


@dataclass(frozen=True)
class File:
    """A file of a node: its text, octal mode, and whether it is spark's rather than root's."""

    text: str
    mode: int = 0o644
    spark: bool = False


def node_files(
    name: str,
    addresses: dict[str, str],
    public_key: str,
    host_key: tuple[str, str],
    *,
    asks: bool,
    environment: dict[str, str],
    nvidia_smi: str,
) -> dict[str, File]:
    """The files of node `name` by path. addresses: of all nodes, by name; asks: sudo wants a password."""
    rule = "ALL" if asks else "NOPASSWD: ALL"
    hosts = "".join(f"{address} {node}\n" for node, address in addresses.items() if node != name)
    files = {
        "etc/machine-id": File(f"{uuid.uuid4().hex}\n", 0o444),
        "etc/hostname": File(f"{name}\n"),
        "etc/hosts": File(f"127.0.0.1 localhost\n127.0.1.1 {name}\n::1 localhost\n{hosts}"),
        "etc/ssh/ssh_host_ed25519_key": File(host_key[0], 0o600),
        "etc/ssh/ssh_host_ed25519_key.pub": File(f"{host_key[1]}\n"),
        "etc/sudoers.d/spark": File(f"spark ALL=(ALL:ALL) {rule}\n", 0o440),
        "etc/sparkops-lab/driver": File(f"{DRIVER_VERSION}\n"),
        # Written to in place, it changes what the node's /proc/meminfo says.
        "etc/sparkops-lab/meminfo": File(MEMINFO),
        "usr/bin/nvidia-smi": File(nvidia_smi, 0o755),
        "home/spark/.ssh/authorized_keys": File(f"{public_key}\n", 0o600, spark=True),
    }
    if environment:
        # The stand-in engine reads it, whichever unit starts it.
        pairs = " ".join(f'"{key}={value}"' for key, value in environment.items())
        settings = f"[Manager]\nDefaultEnvironment={pairs}\n"
        files |= {f"etc/systemd/{scope}.conf.d/lab.conf": File(settings) for scope in ("system", "user")}
    return files


def write(root: Path, files: dict[str, File]) -> None:
    """Write a node's files into its file system. It is not running yet, so nobody sees one half written."""
    for name, file in files.items():
        path = root / name
        if not path.parent.exists():
            path.parent.mkdir(mode=0o700 if file.spark else 0o755)
            if file.spark:
                os.chown(path.parent, UID, UID)
        path.unlink(missing_ok=True)
        path.write_text(file.text)
        path.chmod(file.mode)
        if file.spark:
            os.chown(path, UID, UID)


def set_password(root: Path, password: str) -> None:
    """Give `spark` a password. LabError."""
    call("chroot", root, "chpasswd", stdin=f"spark:{password}\n")


def host_key(name: str) -> tuple[str, str]:
    """A node's own key: private half and public line."""
    return new_key(f"root@{name}")


def models(folder: Path) -> Path:
    """The layer with the recipes' checkpoints (headers, no weights) in spark's home, from the cache or built."""
    from sparkops.lab.standin import checkpoints

    sources = sorted(Path(checkpoints.__file__).parent.glob("*.py"))
    key = cache.key(*(source.read_bytes() for source in sources))
    return cache.cached(folder, f"models-{key}", _seed)


def _seed(dest: Path) -> None:
    from sparkops.lab.standin import checkpoints

    home = dest / "home/spark"
    (home / "models/hf").mkdir(parents=True)
    checkpoints.seed(home / "models/hf")
    for path in (home, *home.rglob("*")):
        shutil.chown(path, UID, UID)
    for path in (dest, dest / "home"):
        path.chmod(0o755)
