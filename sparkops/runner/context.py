"""What all hosts of a run share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sparkops.events import Emit
from sparkops.inventory.inventory import Inventory
from sparkops.playbook.files import Files
from sparkops.playbook.template import Templar
from sparkops.runner.hoststate import HostState, OpenSession
from sparkops.runner.options import Options
from sparkops.runner.prompt import Prompt


@dataclass(frozen=True)
class Context:
    """states: any host's, for delegation."""

    options: Options
    emit: Emit
    files: Files
    connect: OpenSession
    templar: Templar
    states: Mapping[str, HostState]
    inventory: Inventory
    prompt: Prompt
