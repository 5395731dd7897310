"""System packages, with the package manager that the node has: apt or dnf.

Example:
    - name: What every node needs
      package:
        name: "{{ provision_packages }}"
"""

from __future__ import annotations

from sparkops.node.api import Arguments, Failure, Node, Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import ClassVar, Literal


class Args(Arguments):
    """name: packages as the distribution calls them."""

    name: list[str]
    state: Literal["present", "absent", "latest"] = "present"
    aliases: ClassVar[dict[str, str]] = {"pkg": "name"}


def apply(args: Args, node: Node) -> Outcome:
    """Result: packages (those that were not as wanted), stdout and stderr of the package manager."""
    if not args.name:
        return Outcome.ok("no packages named", packages=[])
    if node.which("dnf") and not node.which("apt-get"):
        from sparkops.node import dnf

        return dnf.apply(args.name, args.state, node)
    if node.which("apt-get") is None:
        raise Failure("this node has neither apt-get nor dnf; install by hand: " + " ".join(args.name))
    from sparkops.node import apt

    return apt.apply(args.name, apt.Options(args.state), node)
