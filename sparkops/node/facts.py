"""Facts of a node under Ansible's names and with Ansible's meaning, read from /proc, /sys and /etc in milliseconds.

No program is run, but for executables in facts.d. The name service is not asked: the fqdn comes from /etc/hosts.
"""

from __future__ import annotations

import os

from sparkops.node import distribution, hardware, network
from sparkops.node.api import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from sparkops.node.api import Node

# Ansible's names of subsets, and the group of ours that each asks for; what we don't gather asks for nothing.
SUBSETS = {
    **dict.fromkeys(("hardware", "cpu", "mem", "dmi", "processor", "memory"), "hardware"),
    **dict.fromkeys(("network", "interfaces", "default_ipv4", "default_ipv6"), "network"),
    **dict.fromkeys(("min", "date_time", "distribution", "env", "local", "pkg_mgr", "platform", "python"), "min"),
    **dict.fromkeys(("service_mgr", "user", "system"), "min"),
    **dict.fromkeys(("virtual", "virtualization", "ohai", "facter", "mounts", "devices"), ""),
}
PACKAGE_MANAGERS = (("dnf", "/usr/bin/dnf"), ("apt", "/usr/bin/apt-get"), ("yum", "/usr/bin/yum"))


def gather(node: Node, subsets: list[str], fact_path: str) -> dict[str, Any]:
    """The facts of the groups that Ansible's `gather_subset` asks for; names with `ansible_`. Raises Failure."""
    groups = wanted_groups(subsets)
    found: dict[str, Any] = {"gather_subset": subsets, "module_setup": True}
    if "min" in groups:
        found.update(system(), **distribution.facts(read), **user(), **python(), **managers())
        found.update(date_time=date_time(), env={**os.environ, **node.env}, local=local(node, fact_path))
    if "hardware" in groups:
        found.update(hardware.facts(read))
    if "network" in groups:
        found.update(network.facts(read))
    return {name if name in ("gather_subset", "module_setup") else "ansible_" + name: found[name] for name in found}


def wanted_groups(subsets: list[str]) -> set[str]:
    """The groups that a list such as ["!all", "network"] selects; `min` comes unless "!min" is there."""
    unknown = sorted({name.lstrip("!") for name in subsets} - set(SUBSETS) - {"all"})
    if unknown:
        raise Failure(f"gather_subset: {unknown[0]!r} is no subset; one of: all, {', '.join(sorted(SUBSETS))}")
    every = {"min", "hardware", "network"}
    excluded = {name[1:] for name in subsets if name.startswith("!")}
    named = {name for name in subsets if not name.startswith("!")}
    chosen = set() if named - {"all"} and "all" not in named else set(every)
    if "all" in excluded:
        chosen = set()
    chosen |= {"min"}
    chosen -= {SUBSETS[name] for name in excluded - {"all"}}
    return chosen | {SUBSETS[name] for name in named - {"all"}} - {""}


def read(path: str) -> str:
    """A small text file of the system, "" when it can't be read: a missing source means missing facts, no failure."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def system() -> dict[str, Any]:
    """Kernel, machine and names."""
    import sys

    kernel = os.uname()
    fqdn = full_name(kernel.nodename, read("/etc/hosts"))
    return {
        "architecture": kernel.machine,
        "machine": kernel.machine,
        "machine_id": read("/etc/machine-id").strip(),
        "userspace_bits": "64" if sys.maxsize > 2**32 else "32",
        "system": kernel.sysname,
        "kernel": kernel.release,
        "kernel_version": kernel.version,
        "nodename": kernel.nodename,
        "hostname": kernel.nodename.split(".")[0],
        "fqdn": fqdn,
        "domain": fqdn.partition(".")[2],
    }


def full_name(nodename: str, hosts: str) -> str:
    """The name with a dot that stands beside `nodename` in /etc/hosts, else `nodename`."""
    if "." in nodename:
        return nodename
    for line in hosts.splitlines():
        names = line.partition("#")[0].split()[1:]
        if nodename in names:
            return next((name for name in names if "." in name), nodename)
    return nodename


def user() -> dict[str, Any]:
    """The user that the task runs as."""
    import pwd

    uid = os.geteuid()
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        return {"user_id": str(uid), "user_uid": uid, "user_gid": os.getegid(), "effective_user_id": uid}
    return {
        "user_id": entry.pw_name,
        "user_uid": entry.pw_uid,
        "user_gid": entry.pw_gid,
        "user_gecos": entry.pw_gecos,
        "user_dir": entry.pw_dir,
        "user_shell": entry.pw_shell,
        "real_user_id": os.getuid(),
        "effective_user_id": uid,
        "real_group_id": os.getgid(),
        "effective_group_id": os.getegid(),
    }


def python() -> dict[str, Any]:
    """The interpreter that runs this."""
    import sys

    names = ("major", "minor", "micro", "releaselevel", "serial")
    return {
        "python": {
            "version": dict(zip(names, sys.version_info)),  # Python 3.8 knows no strict=
            "version_info": list(sys.version_info),
            "executable": sys.executable,
            "type": sys.implementation.name,
        },
        "python_version": ".".join(map(str, sys.version_info[:3])),
    }


def managers() -> dict[str, Any]:
    """The service manager and the package manager."""
    init = "systemd" if os.path.isdir("/run/systemd/system") else read("/proc/1/comm").strip() or "unknown"
    package = next((name for name, path in PACKAGE_MANAGERS if os.path.exists(path)), "unknown")
    return {"service_mgr": init, "pkg_mgr": package}


def date_time() -> dict[str, str]:
    """The node's clock: local fields, iso8601 in UTC."""
    import time

    now = time.time()
    here, utc = time.localtime(now), time.gmtime(now)
    micro = f"{int(now % 1 * 1e6):06d}"
    formats = {
        "year": "%Y",
        "month": "%m",
        "weekday": "%A",
        "weekday_number": "%w",
        "weeknumber": "%W",
        "day": "%d",
        "hour": "%H",
        "minute": "%M",
        "second": "%S",
        "date": "%Y-%m-%d",
        "time": "%H:%M:%S",
        "iso8601_basic_short": "%Y%m%dT%H%M%S",
        "tz": "%Z",
        "tz_offset": "%z",
    }
    return {
        **{name: time.strftime(pattern, here) for name, pattern in formats.items()},
        "tz_dst": time.tzname[1],
        "epoch": str(int(now)),
        "epoch_int": str(int(now)),
        "iso8601": time.strftime("%Y-%m-%dT%H:%M:%SZ", utc),
        "iso8601_micro": time.strftime("%Y-%m-%dT%H:%M:%S", utc) + f".{micro}Z",
        "iso8601_basic": time.strftime("%Y%m%dT%H%M%S", here) + micro,
    }


def local(node: Node, folder: str) -> dict[str, Any]:
    """ansible_local: each *.fact file of `folder`, JSON or INI, or what it prints when it is executable."""
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".fact"))
    except OSError:
        return {}
    return {name[: -len(".fact")]: local_fact(node, os.path.join(folder, name)) for name in names}


def local_fact(node: Node, path: str) -> Any:
    """The value of one fact file; a text that says why when it has none, as Ansible does."""
    import json

    if os.access(path, os.X_OK):
        ended = node.run([path], timeout=10)
        if ended.rc:
            return f"Failure executing fact script ({path}), rc: {ended.rc}, err: {ended.err}"
        content = ended.out
    else:
        content = read(path)
    try:
        return json.loads(content)
    except ValueError:
        return ini(path, content)


def ini(path: str, content: str) -> Any:
    """An INI file as {section: {option: value}}, or a text that says it is not one."""
    from configparser import ConfigParser, Error

    parser = ConfigParser(interpolation=None)
    try:
        parser.read_string(content)
    except Error:
        return f"error loading facts as JSON or ini - please check content: {path}"
    return {section: dict(parser.items(section)) for section in parser.sections()}
