"""`sparkops checkpoint graft-mtp`: give a checkpoint the draft of another."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import click

from sparkops.cli.options import Changing, Globals, changing, with_globals

HERE = "localhost"


@click.command("graft-mtp")
@click.argument("target")
@click.argument("donor")
@click.argument("out")
@click.option("--node", "pattern", metavar="PATTERN", help="On these nodes: all three are paths there.")
@click.option("--endpoint", metavar="URL", help="The hub (default: hub_url, $HF_ENDPOINT, or Hugging Face).")
@changing
@with_globals
def graft_mtp(
    given: Globals, target: str, donor: str, out: str, pattern: str | None, endpoint: str | None, how: Changing
) -> int:
    """Make OUT: the checkpoint TARGET with the draft (mtp.* tensors) of DONOR. Neither of the two is changed.

    TARGET is a folder; its files are hard links in OUT. DONOR is a folder or a *.safetensors file, or
    hf:ORG/NAME[@REVISION], of which only the draft's bytes are fetched. The nodes fetch them themselves.

    A token for gated models is taken from the variable hub_token, or HF_TOKEN.
    """
    from sparkops.checkpoint.hub import Hub
    from sparkops.checkpoint.sources import Repository
    from sparkops.cli.run import Workplace, run
    from sparkops.node import hub

    if donor.startswith(hub.PREFIX):
        # What is wrong with either is found before a node is asked.
        Repository.of(donor)
        Hub(endpoint or hub.ENDPOINT)
    elif pattern is None:
        donor = _here(donor)
    connection = {}
    if pattern is None:
        target, out = _here(target), _here(out)
        # No inventory is needed, or read.
        given = replace(given, inventory=(f"{HERE},",))
        connection = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    values = {
        **connection,
        "graft_target": target,
        "graft_donor": donor,
        "graft_out": out,
        **({"hub_url": endpoint} if endpoint else {}),
    }
    return run(Workplace(given, "graft-mtp"), pattern or HERE, how, values)


def _here(path: str) -> str:
    return str(Path(path).expanduser().absolute())
