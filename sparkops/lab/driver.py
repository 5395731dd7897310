"""What makes a lab's nodes: a driver. One Protocol, found by the name that `lab up --driver` takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from sparkops.errors import LabError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sparkops.lab.lab import Lab

NAMES = ("nspawn", "process")


class Driver(Protocol):
    """Makes, reaches and removes the nodes of a lab. Every method raises LabError."""

    def up(self, lab: Lab) -> None:
        """Start every node of `lab.nodes`; return once each one's sshd answers.

        `lab` is saved already. The driver places the nodes (`lab.place`), records in `lab.state` what it is about
        to make before making it (`lab.save`), and calls `lab.publish` once it knows addresses and host keys.
        """

    def down(self, lab: Lab) -> None:
        """End and remove everything that `up` made or may have made, also after a crash; safe to repeat.

        The files in `lab.dir` that `Lab` wrote are left to `Lab.remove`.
        """

    def exec(self, lab: Lab, node: str, argv: Sequence[str]) -> int:
        """Run a command as root on a node, without SSH, on this terminal; its exit status (128 + signal)."""

    def run(self, lab: Lab, argv: Sequence[str]) -> int:
        """Run a command here, where the nodes can be reached, on this terminal; its exit status (128 + signal)."""

    def reboot(self, lab: Lab, node: str) -> None:
        """Reboot a node; return once its sshd answers again."""

    def poweroff(self, lab: Lab, node: str) -> None:
        """Shut a node down; return once it is off."""

    def cut(self, lab: Lab, node: str) -> None:
        """Pull a node's network cable: packets vanish, connections hang."""

    def mend(self, lab: Lab, node: str) -> None:
        """Put the cable back, and start the node if it is off; return once its sshd answers."""

    def status(self, lab: Lab) -> dict[str, str]:
        """Each node's state: `running`, `degraded`, `starting`, `cut` or `off`."""


def driver(name: str) -> Driver:
    """The driver of that name; the import is as late as can be, each has libraries of its own."""
    if name == "nspawn":
        from sparkops.lab.nspawn.driver import NspawnDriver

        return NspawnDriver()
    if name == "process":
        from sparkops.lab.process.driver import ProcessDriver

        return ProcessDriver()
    raise LabError(f"no lab driver is called {name!r}", hint=f"choose one of: {', '.join(NAMES)}")
