"""The engine's wheels, fetched once by this machine's pip as the lock says: what the lab's index serves to nodes."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import platformdirs

from sparkops.lab.nspawn.cache import cached

# A wheel for any glibc up to the nodes' own (Debian 12: 2.36) will do; pip takes just the names that it is given.
GLIBCS = range(36, 16, -1)


def wheelhouse(lock: Path, machine: str, python: str) -> tuple[Path, bool]:
    """The folder with every wheel of a lock, from the cache or fetched into it; and whether it was fetched."""
    folder = platformdirs.user_cache_path("sparkops") / "engine"
    name = f"wheels-{machine}-{hashlib.sha256(lock.read_bytes()).hexdigest()[:12]}"
    there = (folder / name).is_dir()
    return cached(folder, name, lambda dest: fetch(lock, machine, python, dest)), not there


def fetch(lock: Path, machine: str, python: str, dest: Path) -> None:
    """Fetch every wheel of a lock, whatever Python this is."""
    digits = python.replace(".", "")
    argv = [sys.executable, "-m", "pip", "download", "--quiet", "--no-cache-dir", "--no-deps", "--require-hashes"]
    argv += ["--only-binary=:all:", "--implementation=cp", f"--python-version={python}", "--dest", str(dest)]
    argv += [f"--abi={abi}" for abi in (f"cp{digits}", "abi3", "none")]
    argv += [f"--platform=manylinux_2_{glibc}_{machine}" for glibc in GLIBCS]
    argv += [f"--platform=manylinux2014_{machine}", f"--platform=linux_{machine}", "--platform=any"]
    done = subprocess.run([*argv, "--requirement", str(lock)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


def size(folder: Path) -> int:
    """Bytes of all that lies in a folder, a file with several names counted once."""
    seen = {(status.st_dev, status.st_ino): status.st_size for path in folder.rglob("*") if (status := path.lstat())}
    return sum(seen.values())
