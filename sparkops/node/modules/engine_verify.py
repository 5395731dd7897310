"""Compare the engines that sparkops built on a node with their locks and their packages' records. Nothing is changed.

Example:
    - name: The engines are what their locks say
      engine_verify:
        home: /opt/sparkops
"""

from __future__ import annotations

import os

from sparkops.node.api import Arguments, Node, Outcome, Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Args(Arguments):
    home: Path  # sparkops_home; engines lie in its engines/


def apply(args: Args, node: Node) -> Outcome:
    """Always ok. Result: engines, each with name, built, tried (dates), packages (how many) and problems (text).

    See sparkops.node.venv_contents for what is looked at; a patched file is what it was when the patch was put in.
    """
    folder = os.path.join(args.home, "engines")
    found = [one for name in listed(folder) if (one := engine(os.path.join(folder, name), name, node)) is not None]
    wrong = sum(1 for one in found if one["problems"])
    return Outcome.ok(f"{len(found)} engines, {wrong} with problems", engines=found)


def listed(folder: str) -> list[str]:
    """The names in a folder; [] where there is none. Raises Failure."""
    from sparkops.node import files

    try:
        return sorted(os.listdir(folder))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise files.refusal("list", folder, error) from error


def engine(path: str, name: str, node: Node) -> dict[str, Any] | None:
    """What is known of one environment; None for what sparkops did not build, and for a build under way."""
    from sparkops.node import files, patched, venv, venv_contents

    noted = venv.noted(path)
    if noted is None or venv.BUILDING in name:
        return None
    found = venv_contents.contents(path, node)
    site = patched.site_packages(os.path.join(path, "lib", "python3*", "site-packages"))
    for patch in noted["patches"]:
        file = os.path.join(site, patch["file"])
        if not os.path.isfile(file) or files.sha256(file) != patch["sha256"]:
            found["problems"].append(f"{patch['file']} is not as the patch {patch['name']} left it")
    return {"name": name, "built": noted["built"], "tried": noted["tried"], **found}
