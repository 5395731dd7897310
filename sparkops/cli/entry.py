"""The console script: main.main, with a quiet Ctrl-C from the first import to the last breath."""

from __future__ import annotations

import gc
import os
import signal
import sys
from typing import NoReturn


def end(*_: object) -> NoReturn:
    """Ctrl-C where nothing is under way: raised in the middle of an import it would be a traceback, or lost."""
    os.write(2, b"interrupted\n")
    os._exit(130)


def quiet() -> None:
    """From now on Ctrl-C just ends the process, unless it is ignored (a job in the background)."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, end)


def raising() -> None:
    """From now on it is raised again."""
    if signal.getsignal(signal.SIGINT) is end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def main() -> None:
    """See main.main."""
    quiet()
    # What imports make stays; to look through it again and again is a twentieth of a short run.
    gc.set_threshold(100_000, 20, 20)
    from sparkops.cli.main import main

    code = 0
    try:
        main(sys.argv[1:])
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except KeyboardInterrupt:
        # Between the last thing done and this.
        end()
    quiet()
    leave(code)


def leave(code: int) -> NoReturn:
    """End the process at once: to take all modules down first costs an eighth of a short run, and does nothing."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            # Who reads us has gone, or main has closed it for that reason.
            code = code or 141
    os._exit(code)


if __name__ == "__main__":
    main()
