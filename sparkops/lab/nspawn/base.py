"""The base that all nodes of all labs share, read only: Debian with systemd, sshd and sudo, and the lab's packages."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from sparkops.lab import debs
from sparkops.lab.lab import write_file
from sparkops.lab.nspawn import cache
from sparkops.lab.nspawn.host import call, dying
from sparkops.lab.nspawn.network import INDEX_ADDRESS, INDEX_PORT

SUITE = "bookworm"
PACKAGES = (
    *("systemd", "systemd-sysv", "dbus", "dbus-user-session", "libpam-systemd", "openssh-server", "sudo"),
    *("python3", "python3-venv", "iproute2", "procps", "util-linux", "passwd", "polkitd", "ca-certificates"),
)
# What a node can install from the lab's repository, with whatever they need that the base lacks.
OFFERED = ("ninja-build", "jq", "rsync", "libnuma1")
# Run by mmdebstrap with the new root as $1, while that root's package lists are there.
FETCH = (
    'mkdir "$1/lab-debs" && APT_CONFIG="$MMDEBSTRAP_APT_CONFIG" apt-get --yes --download-only --no-install-recommends '
    f'-o Dir::Cache::archives="$1/lab-debs" install {" ".join(OFFERED)}'
)
# Work in the background would change files under a test that compares listings.
MASKED = (
    *("apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "systemd-tmpfiles-clean.timer"),
    *("console-getty.service", "ssh.socket", "systemd-networkd.service", "systemd-resolved.service"),
)
# /proc/sys is read only in a container; this one file is bound in and made writable at each boot.
DROP_CACHES = """\
[Unit]
Description=Let root on this node drop the page cache
DefaultDependencies=no

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/bin/mount -o remount,bind,rw /proc/sys/vm/drop_caches
"""
REPOSITORY = f"http://{INDEX_ADDRESS}:{INDEX_PORT}/debs"
FILES = {
    "etc/systemd/system/lab-drop-caches.service": DROP_CACHES,
    "etc/apt/sources.list": f"deb [trusted=yes] {REPOSITORY} ./\n",
    "etc/apt/apt.conf.d/90lab": 'APT::Install-Recommends "false";\nAcquire::Languages "none";\n',
    # pip takes nothing over plain HTTP unless it is told to.
    "etc/pip.conf": f"[global]\ntrusted-host = {INDEX_ADDRESS}\n",
    # Without a reverse zone sshd would wait for a name server that cannot be reached.
    "etc/ssh/sshd_config.d/lab.conf": "UseDNS no\n",
}


def base(folder: Path) -> Path:
    """The base in the cache: root/ (a file system) and debs/ (a flat repository). Built when it is not there.

    LabError when a package cannot be fetched.
    """
    ingredients = json.dumps([SUITE, PACKAGES, OFFERED, FETCH, MASKED, FILES, debs.STANDINS, architecture()])
    return cache.cached(folder, f"{SUITE}-{cache.key(ingredients, _sources())}", _build)


def _sources() -> bytes:
    """The code that shapes a base."""
    return Path(__file__).read_bytes() + Path(debs.__file__).read_bytes()


def architecture() -> str:
    """Debian's name for this machine's architecture."""
    return call("dpkg", "--print-architecture").strip()


def mirror() -> str:
    """Where this machine's apt gets Debian from."""
    targets = call("apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE)", "Created-By: Packages")
    found = [line.split()[0] for line in targets.splitlines() if line.split()[1:] == [SUITE]]
    return found[0] if found else "http://deb.debian.org/debian"


def mmdebstrap(root: Path) -> list[str]:
    """The command that makes a root file system."""
    excluded = [f"--dpkgopt=path-exclude=/usr/share/{part}/*" for part in ("man", "doc", "locale")]
    return [
        *("mmdebstrap", "--mode=root", "--variant=apt", "--format=directory", f"--include={','.join(PACKAGES)}"),
        *excluded,
        f"--customize-hook={FETCH}",
        *(SUITE, str(root), mirror()),
    ]


def _build(dest: Path) -> None:
    root = dest / "root"
    # mmdebstrap leaves its scratch folder when it is killed; here it goes with the rest of an unfinished base.
    scratch = dest / "tmp"
    scratch.mkdir(mode=0o700)
    call(*dying(["env", f"TMPDIR={scratch}", *mmdebstrap(root)]))
    shutil.rmtree(scratch)
    (root / "lab-debs").rename(dest / "debs")
    for left in ("lock", "partial"):
        path = dest / "debs" / left
        path.rmdir() if path.is_dir() else path.unlink(missing_ok=True)
    debs.build_standins(dest / "debs")
    debs.write_index(dest / "debs")
    for name, text in FILES.items():
        write_file(root / name, text)
    _apt_lists(root, dest / "debs")
    _units(root)
    for key in root.glob("etc/ssh/ssh_host_*"):
        key.unlink()
    # 1000 is the first ordinary user, as on a Spark.
    call("chroot", root, "useradd", "--uid", "1000", "--create-home", "--shell", "/bin/bash", "spark")
    (root / "var/log/journal").mkdir(exist_ok=True)


def _apt_lists(root: Path, repository: Path) -> None:
    """What `apt-get update` would fetch from the lab's repository, as a fresh installation has it."""
    prefix = REPOSITORY.removeprefix("http://").replace("/", "_") + "_._"
    lists = root / "var/lib/apt/lists"
    for name in ("Packages", "Release"):
        write_file(lists / f"{prefix}{name}", (repository / name).read_text())


def _units(root: Path) -> None:
    units = root / "etc/systemd/system"
    for unit in MASKED:
        (units / unit).unlink(missing_ok=True)
        (units / unit).symlink_to("/dev/null")
    wants = units / "sysinit.target.wants"
    wants.mkdir(exist_ok=True)
    (wants / "lab-drop-caches.service").symlink_to("/etc/systemd/system/lab-drop-caches.service")
