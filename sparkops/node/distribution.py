"""Which Linux distribution a node runs, in Ansible's names."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

# os-release's ID -> Ansible's distribution; other systems are called by os-release's NAME.
NAMES = {
    "debian": "Debian",
    "ubuntu": "Ubuntu",
    "linuxmint": "Linux Mint",
    "rhel": "RedHat",
    "centos": "CentOS",
    "fedora": "Fedora",
    "rocky": "Rocky",
    "almalinux": "AlmaLinux",
    "ol": "OracleLinux",
    "amzn": "Amazon",
    "sles": "SLES",
    "opensuse-leap": "openSUSE Leap",
    "opensuse-tumbleweed": "openSUSE Tumbleweed",
    "arch": "Archlinux",
    "alpine": "Alpine",
}
FAMILIES = (
    ("Debian", {"debian", "ubuntu"}),
    ("RedHat", {"rhel", "fedora", "centos", "rocky", "almalinux", "ol", "amzn"}),
    ("Suse", {"suse", "opensuse", "sles", "opensuse-leap", "opensuse-tumbleweed"}),
    ("Archlinux", {"arch"}),
    ("Alpine", {"alpine"}),
)


def facts(read: Callable[[str], str]) -> dict[str, str]:
    """The distribution facts; `read` gives a file's text or ""."""
    release = fields(read("/etc/os-release") or read("/usr/lib/os-release"))
    ident = release.get("ID", "linux")
    version = release.get("VERSION_ID", "NA")
    if ident == "debian":
        # os-release has only the major number; Ansible gives the point release.
        point = read("/etc/debian_version").strip()
        version = point if point[:1].isdigit() else version
    name = NAMES.get(ident, release.get("NAME", "OtherLinux"))
    return {
        "distribution": name,
        "distribution_version": version,
        "distribution_major_version": version.split(".")[0],
        "distribution_release": release.get("VERSION_CODENAME") or codename(release.get("VERSION", "")),
        "os_family": family(ident, release.get("ID_LIKE", "").split(), name),
    }


def fields(text: str) -> dict[str, str]:
    """os-release's KEY=value lines, quotes taken off."""
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line and not line.startswith("#"))
    return {key.strip(): value.strip().strip("\"'") for key, _, value in pairs}


def codename(version: str) -> str:
    """`Plow` out of `9.4 (Plow)`, else NA."""
    return version.partition("(")[2].partition(")")[0] or "NA"


def family(ident: str, like: list[str], name: str) -> str:
    """Ansible's os_family of a system by its ID, or by what it says it is like."""
    for word in [ident, *like]:
        for known, members in FAMILIES:
            if word in members:
                return known
    return name
