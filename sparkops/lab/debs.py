"""A flat Debian repository: tiny packages of our own and the Packages and Release files over all of them."""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from email.utils import formatdate
from pathlib import Path

from sparkops.errors import LabError

# Packages that a node is given for building kernels at start-up. The lab compiles nothing, so a name is enough.
STANDINS = {"gcc": "4:12.2.0-3", "build-essential": "12.9", "python3-dev": "3.11.2-1"}


def control(name: str, version: str) -> str:
    """The control file of a stand-in package."""
    return (
        f"Package: {name}\nVersion: {version}+sparkops.lab\nArchitecture: all\n"
        "Maintainer: sparkops lab <lab@localhost>\nSection: misc\nPriority: optional\n"
        f"Description: empty stand-in for {name} on a sparkops lab node\n"
        f" It satisfies what asks for {name} and contains nothing. Made by sparkops for its lab only.\n"
    )


def build_standins(dest: Path) -> None:
    """Write the stand-in packages into `dest`. LabError when dpkg-deb fails."""
    with tempfile.TemporaryDirectory() as scratch:
        for name, version in STANDINS.items():
            tree = Path(scratch, name)
            (tree / "DEBIAN").mkdir(parents=True, mode=0o755)
            (tree / "DEBIAN" / "control").write_text(control(name, version))
            _dpkg_deb("--root-owner-group", "--build", str(tree), str(dest / f"{name}_lab_all.deb"))


def write_index(folder: Path) -> None:
    """Write Packages and Release over the .deb files of `folder`. LabError when one is not a package."""
    packages = "\n".join(stanza(deb) for deb in sorted(folder.glob("*.deb")))
    (folder / "Packages").write_text(packages)
    (folder / "Release").write_text(release(packages.encode()))


def stanza(deb: Path) -> str:
    """A package's entry in Packages."""
    content = deb.read_bytes()
    fields = _dpkg_deb("--field", str(deb)).rstrip("\n")
    sha256 = hashlib.sha256(content).hexdigest()
    return f"{fields}\nFilename: ./{deb.name}\nSize: {len(content)}\nSHA256: {sha256}\n"


def release(packages: bytes) -> str:
    """The Release file of a repository with these Packages; unsigned, for `[trusted=yes]`."""
    digest = hashlib.sha256(packages).hexdigest()
    date = formatdate(usegmt=True)
    return f"Origin: sparkops lab\nLabel: sparkops lab\nDate: {date}\nSHA256:\n {digest} {len(packages)} Packages\n"


def _dpkg_deb(*arguments: str) -> str:
    done = subprocess.run(["dpkg-deb", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise LabError(f"dpkg-deb {arguments[0]} failed: {done.stderr.strip()}", where=arguments[-1])
    return done.stdout
