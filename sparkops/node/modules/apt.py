"""Debian and Ubuntu packages.

Example:
    - name: What FlashInfer compiles with
      apt:
        name: [ninja-build, python3-dev]
        state: present
"""

from __future__ import annotations

from sparkops.node.api import Arguments, Node, Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import ClassVar, Literal


class Args(Arguments):
    """name: packages as NAME, NAME:ARCH or NAME=VERSION; none to update the index only. cache_valid_time: seconds.

    A package that the index does not know makes for one update by itself. update_cache: read the index anew first;
    with cache_valid_time only when it is older than that, which by itself asks for it too. install_recommends: left
    out, as apt is set up on the node. purge: with state: absent, configuration too. autoremove: also remove what was
    installed for other packages only and is needed no more.
    """

    name: list[str] = []
    state: Literal["present", "absent", "latest"] = "present"
    update_cache: bool = False
    cache_valid_time: int = 0
    install_recommends: bool | None = None
    purge: bool = False
    autoremove: bool = False
    aliases: ClassVar[dict[str, str]] = {"pkg": "name", "package": "name", "update-cache": "update_cache"}


def apply(args: Args, node: Node) -> Outcome:
    """Result: packages (those that were not as wanted), cache_updated, stdout and stderr of apt-get."""
    from sparkops.node import apt

    # As in Ansible, a time alone asks for the update too.
    update_cache = args.update_cache or args.cache_valid_time > 0
    options = apt.Options(
        args.state, update_cache, args.cache_valid_time, args.install_recommends, args.purge, args.autoremove
    )
    return apt.apply(args.name, options, node)
