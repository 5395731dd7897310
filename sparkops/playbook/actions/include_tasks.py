"""Carry on with the tasks of a file, found when it is reached; its words go down to them.

Example:
    - name: What the distribution needs
      include_tasks: "{{ ansible_os_family }}.yml"
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparkops.node.api import Arguments
from sparkops.playbook.action import Acted

if TYPE_CHECKING:
    from sparkops.playbook.scope import Scope


class Args(Arguments):
    file: str  # beside the file that includes it, or in tasks/

    free_form = "file"


def act(args: Args, scope: Scope) -> Acted:
    """Result: include (the file's path); the runner goes on with its tasks."""
    path = str(scope.find(args.file, "tasks"))
    return Acted(result={"include": path}, tasks_file=path)
