"""RPM's packages: what is installed, by rpm; installing and removing, by dnf in a detached job."""

from __future__ import annotations

import os

from sparkops.node.api import Failure, Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from sparkops.node.api import Node

VERBS = {"present": "install", "latest": "upgrade", "absent": "remove"}
LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+._-~:^")


def check_name(name: str) -> None:
    """Raises Failure for what can't be a package's name."""
    if not name or not LETTERS.issuperset(name) or name[0] in "-.":
        raise Failure(f"{name!r} is no name of a package", package=name)


def argv(verb: str, names: list[str]) -> list[str]:
    """The dnf command of a verb: install, upgrade, remove, check-update."""
    return ["dnf", "-y", "-q", verb, *names]


def installed(node: Node, name: str) -> bool:
    """Whether a package, or one that provides the name, is installed."""
    return node.run(["rpm", "-q", "--whatprovides", name]).rc == 0


def apply(names: list[str], state: str, node: Node) -> Outcome:
    """Bring packages to a state. Result: packages (those that were not), stdout, stderr."""
    for name in names:
        check_name(name)
    missing = [name for name in names if not installed(node, name)]
    if state == "absent":
        wanted = [name for name in names if name not in missing]
    elif state == "latest" and not missing:
        # 100: there are updates.
        wanted = names if node.run(argv("check-update", names)).rc == 100 else []
    else:
        wanted = missing
    if not wanted:
        return Outcome.ok(packages=[])
    verb = "install" if missing and state == "latest" else VERBS[state]
    message = f"{verb} {' '.join(wanted)}"
    if node.check:
        return Outcome.changed(message, packages=wanted)
    if os.geteuid() != 0:
        raise Failure("installing and removing packages needs become: true", packages=wanted)

    def work(node: Node) -> dict[str, Any]:
        done = node.run(argv(verb, wanted), env={"LC_ALL": "C"})
        return {"rc": done.rc, "stdout": done.out, "stderr": done.err}

    from hashlib import sha256

    done = node.job("dnf-" + sha256(message.encode()).hexdigest()[:12], work)
    if done["rc"]:
        lines = done["stderr"].strip().splitlines()[-8:]
        raise Failure("\n".join([f"dnf {message} failed:", *lines]), packages=wanted, **done)
    return Outcome.changed(message, packages=wanted, stdout=done["stdout"], stderr=done["stderr"])
