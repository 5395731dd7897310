"""The lab's server of wheels and packages, on the bridge."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from sparkops.errors import LabError
from sparkops.lab import index
from sparkops.lab.nspawn.host import entering
from sparkops.lab.nspawn.network import INDEX_ADDRESS, INDEX_PORT, banner


def start(lab_net: Path, wheels: Path, debs: Path, log: Path, timeout: float = 20.0) -> None:
    """Start the server, which goes on when this process ends; return once it answers. LabError with its log's end."""
    argv = [sys.executable, "-I", index.__file__, INDEX_ADDRESS, str(INDEX_PORT), str(wheels), str(debs)]
    with log.open("ab") as output:
        process = subprocess.Popen(
            entering(lab_net, argv), stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    deadline = time.monotonic() + timeout
    while banner(lab_net, INDEX_ADDRESS, INDEX_PORT, 0.05) is None:
        if process.poll() is not None or time.monotonic() > deadline:
            tail = "\n".join(log.read_text(errors="replace").splitlines()[-10:])
            raise LabError(f"the lab's index did not start: {tail}", where=str(log))
        time.sleep(0.02)
