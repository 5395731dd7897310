"""Debian's packages: what is installed, by dpkg-query; installing and removing, by apt-get in a detached job."""

from __future__ import annotations

import os

from sparkops.node.api import Failure, Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from sparkops.node.api import Completed, Node

FORMAT = "${db:Status-Abbrev}\\t${Package}\\t${Architecture}\\t${Version}\\t${Provides}\\n"
STAMPS = ("/var/lib/apt/periodic/update-success-stamp", "/var/lib/apt/lists")
DPKG_LOG = "/var/log/dpkg.log"
# Nothing asks; needrestart would restart services, a served model among them, behind everybody's back.
QUIET = {"DEBIAN_FRONTEND": "noninteractive", "DEBIAN_PRIORITY": "critical", "NEEDRESTART_SUSPEND": "1", "LC_ALL": "C"}
KEEP_CONFIGS = ("Dpkg::Options::=--force-confdef", "Dpkg::Options::=--force-confold", "DPkg::Lock::Timeout=60")
# What apt-get says when its index is empty or out of date: worth one update and another try.
STALE = (
    "Unable to locate package",
    "has no installation candidate",
    "was not found",
    "404  Not Found",
    "is not available",
)
LOWER = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")
NAME = LOWER | frozenset("+.-")
VERSION = NAME | frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ:~")


class Package:
    """A package as a task names it: name[:arch][=version]."""

    def __init__(self, text: str) -> None:
        self.text = text
        rest, equals, self.version = text.partition("=")
        self.name, colon, self.arch = rest.partition(":")
        # A name that ends with "-" would tell apt-get to remove it.
        if (
            not self.name
            or self.name[0] not in LOWER
            or self.name.endswith("-")
            or not NAME.issuperset(self.name)
            or (colon and (not self.arch or not (LOWER | {"-"}).issuperset(self.arch)))
            or (equals and (not self.version or not VERSION.issuperset(self.version)))
        ):
            raise Failure(f"{text!r} is no name of a package: NAME, NAME:ARCH, NAME=VERSION", package=text)


class Installed:
    """One line of dpkg's list. status: "ii" installed, "rc" removed with its configuration left."""

    def __init__(self, status: str, name: str, arch: str, version: str, provides: str) -> None:
        self.status = status
        self.name = name
        self.arch = arch
        self.version = version
        self.provides = {part.split()[0] for part in provides.split(",") if part.strip()}

    @property
    def here(self) -> bool:
        """Whether it is installed (`hi`: and held)."""
        return self.status[1:2] == "i"


class Options:
    """The arguments of apt that are not names."""

    def __init__(
        self,
        state: str,
        update_cache: bool = False,
        cache_valid_time: int = 0,
        install_recommends: bool | None = None,
        purge: bool = False,
        autoremove: bool = False,
    ) -> None:
        self.state = state
        self.update_cache = update_cache
        self.cache_valid_time = cache_valid_time
        self.install_recommends = install_recommends
        self.purge = purge
        self.autoremove = autoremove


def parse(listing: str) -> list[Installed]:
    """dpkg-query's output in FORMAT."""
    return [Installed(*line.split("\t")) for line in listing.splitlines() if line.count("\t") == 4]


def satisfied(package: Package, installed: list[Installed]) -> bool:
    """Whether a package, or one that provides it, is installed in the wanted version and architecture."""
    return any(
        one.here
        and (one.name == package.name or (package.name in one.provides and not package.version))
        and package.arch in ("", one.arch, "any")
        and package.version in ("", one.version)
        for one in installed
    )


def left(package: Package, installed: list[Installed], purge: bool) -> bool:
    """Whether there is something of a package to remove."""
    return any(
        one.name == package.name and package.arch in ("", one.arch) and (one.here or (purge and one.status[1:2] == "c"))
        for one in installed
    )


def query(node: Node, packages: list[Package]) -> list[Installed]:
    """What dpkg knows of some packages (all of them when the list is empty)."""
    names = sorted({package.name for package in packages})
    done = node.run(["dpkg-query", "-W", "-f", FORMAT, *names], env=QUIET)
    # 1: some are not known.
    if done.rc not in (0, 1):
        raise Failure(f"dpkg-query failed: {done.err.strip()}", rc=done.rc)
    return parse(done.out)


def get_argv(verb: str, names: list[str], options: Options) -> list[str]:
    """The apt-get command of a verb: install, remove, purge."""
    settings = list(KEEP_CONFIGS)
    if options.install_recommends is not None:
        settings.append(f"APT::Install-Recommends={'yes' if options.install_recommends else 'no'}")
    words = [word for setting in settings for word in ("-o", setting)]
    return ["apt-get", "-y", "-q", *words, *(["--auto-remove"] if options.autoremove else []), verb, "--", *names]


def apply(names: list[str], options: Options, node: Node) -> Outcome:
    """Bring packages to a state. Result: packages (those that were not), cache_updated, stdout, stderr."""
    packages = [Package(name) for name in names]
    said: dict[str, Any] = {"packages": [], "cache_updated": False}
    if options.update_cache and index_age() >= options.cache_valid_time:
        said["cache_updated"] = True
        if not node.check:
            update(node)
    if not packages:
        message = "package index updated" if said["cache_updated"] else ""
        return Outcome.changed(message, **said) if said["cache_updated"] else Outcome.ok(**said)
    verb, wanted = needed(packages, options, node)
    if options.state == "latest":
        wanted = outdated(packages, options, node, said)
    if not wanted:
        return Outcome.ok(**said)
    said["packages"] = [package.text for package in wanted]
    message = f"{verb} {' '.join(said['packages'])}"
    diff = "".join(f"{'+' if verb == 'install' else '-'}{name}\n" for name in said["packages"])
    if node.check:
        return Outcome.changed(message, diff, **said)
    argv = get_argv(verb, said["packages"], options)
    done = carry_out(argv, node, said)
    if done["rc"]:
        raise refused(verb, done, said)
    return Outcome.changed(message, diff, **said, stdout=done["stdout"], stderr=done["stderr"])


def needed(packages: list[Package], options: Options, node: Node) -> tuple[str, list[Package]]:
    """apt-get's verb, and the packages that are not as they should be."""
    installed = query(node, packages)
    if options.state == "absent":
        verb = "purge" if options.purge else "remove"
        return verb, [package for package in packages if left(package, installed, options.purge)]
    wanted = [package for package in packages if not satisfied(package, installed)]
    # A name that dpkg does not know may be a virtual one.
    if wanted and any(package.name not in {one.name for one in installed} for package in wanted):
        everything = query(node, [])
        wanted = [package for package in wanted if not satisfied(package, everything)]
    return "install", wanted


def outdated(packages: list[Package], options: Options, node: Node, said: dict[str, Any]) -> list[Package]:
    """For state: latest: those that apt-get would install or upgrade."""
    simulated = simulate(get_argv("install", [package.text for package in packages], options), node, said)
    if simulated.rc and node.check:
        return packages
    if simulated.rc:
        raise refused("install", {"rc": simulated.rc, "stdout": simulated.out, "stderr": simulated.err}, said)
    changing = set(instances(simulated.out))
    return packages if changing else []


def instances(simulation: str) -> list[str]:
    """The names of the packages that `apt-get -s` would unpack."""
    return [line.split()[1] for line in simulation.splitlines() if line.startswith("Inst ")]


def simulate(argv: list[str], node: Node, said: dict[str, Any]) -> Completed:
    """What apt-get would do; an index that does not know a package is updated once."""
    dry = [argv[0], "-s", *argv[1:]]
    done = node.run(dry, env=QUIET)
    if done.rc and any(word in done.err for word in STALE) and not said["cache_updated"] and not node.check:
        update(node)
        said["cache_updated"] = True
        done = node.run(dry, env=QUIET)
    return done


def carry_out(argv: list[str], node: Node, said: dict[str, Any]) -> dict[str, Any]:
    """Run apt-get in a job that goes on by itself; progress is counted in dpkg's log."""
    need_root()
    simulated = simulate(argv, node, said)
    if simulated.rc:
        return {"rc": simulated.rc, "stdout": simulated.out, "stderr": simulated.err}
    done = job(argv, node, len(instances(simulated.out)))
    if done["rc"] and any(word in done["stderr"] for word in STALE) and not said["cache_updated"]:
        # The index is older than what the mirror still has.
        update(node)
        said["cache_updated"] = True
        done = job(argv, node, len(instances(simulated.out)))
    return done


def job(argv: list[str], node: Node, total: int) -> dict[str, Any]:
    """apt-get, detached; a run that comes back joins it."""
    from hashlib import sha256

    def work(node: Node) -> dict[str, Any]:
        done = node.run(argv, env=QUIET)
        return {"rc": done.rc, "stdout": done.out, "stderr": done.err}

    key = "apt-" + sha256("\0".join(argv).encode()).hexdigest()[:12]
    return node.job(key, work, watcher(total))


def watcher(total: int) -> Callable[[Node], None]:
    """Counts the packages that dpkg has set up since now."""
    start = os.path.getsize(DPKG_LOG) if os.path.exists(DPKG_LOG) else 0

    def watch(node: Node) -> None:
        try:
            with open(DPKG_LOG, encoding="utf-8", errors="replace") as file:
                file.seek(start)
                done = sum(" status installed " in line for line in file)
        except FileNotFoundError:
            done = 0
        node.progress(min(done, total), total or None, "packages")

    return watch


def index_age() -> float:
    """Seconds since the package index was updated; infinite when it never was."""
    import time

    for path in STAMPS:
        try:
            return time.time() - os.stat(path).st_mtime
        except OSError:
            continue
    return float("inf")


def update(node: Node) -> None:
    """apt-get update. Raises Failure when it fails."""
    need_root()
    argv = ["apt-get", "-q", "-o", KEEP_CONFIGS[-1], "update"]
    done = node.run(argv, env=QUIET)
    if done.rc:
        lines = (done.err.strip() or done.out.strip()).splitlines()[-6:]
        raise Failure("\n".join(["apt-get update failed on this node:", *lines]), rc=done.rc)


def need_root() -> None:
    """Raises Failure for others than root."""
    if os.geteuid() != 0:
        raise Failure("installing and removing packages needs become: true")


def refused(verb: str, done: dict[str, Any], said: dict[str, Any]) -> Failure:
    """The Failure for an apt-get that did not work."""
    errors = [line for line in done["stderr"].splitlines() if line.startswith("E:")]
    lines = errors or done["stderr"].strip().splitlines()[-8:] or done["stdout"].strip().splitlines()[-8:]
    message = f"apt-get {verb} {' '.join(said['packages'])} failed:"
    if any(word in line for line in lines for word in STALE):
        lines.append("the name or version is in none of this node's package sources, as of their last update")
    return Failure("\n".join([message, *lines]), **{**said, **done})
